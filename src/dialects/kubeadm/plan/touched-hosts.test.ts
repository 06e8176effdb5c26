/** Proves what the report of an attempt keeps of earlier attempts, so that a half-upgraded host stays cordoned. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { later } from '../../../../test/support/clock/times.ts';
import { foundOn } from './host-report.ts';
import { isUnchanged, type Report, reportPatch } from './kubeadm-signal.ts';

const REPORT: Report = {
  rollout: 'a',
  target: 'workers/w1',
  attempt: later(0),
  state: 'failed',
  step: 'Kubelet',
  since: later(0),
  spent: {},
  touchedBefore: false,
  upgradesKubelet: true,
};

/** Returns the report of the last attempt, after all of them have run on the host. */
function after(...attempts: readonly Partial<Report>[]): Report {
  return attempts.reduce<Report>(
    (earlier, attempt) => {
      const { annotations = {} } = (
        reportPatch(earlier) as { metadata: { annotations?: Record<string, string> } }
      ).metadata;
      const fresh = { ...REPORT, ...attempt };
      const { touched: _, touchedBefore: __, ...next } = fresh;
      const { from: ___, ...found } = foundOn(buildNode('w1', { annotations }), fresh);
      return { ...next, ...found, ...(attempt.touched && { touched: true }) };
    },
    { ...REPORT, rollout: 'first', state: 'finished' },
  );
}

const TOUCHED = { rollout: 'a', touched: true };
const EARLY = { rollout: 'c' };

test.each<[string, readonly Partial<Report>[]]>([
  ['nothing has changed the host', [EARLY]],
  [
    'an attempt that upgraded the kubelet has finished since',
    [TOUCHED, { rollout: 'b', state: 'finished' }, EARLY],
  ],
  [
    'only an attempt without the kubelet had changed the host',
    [{ ...TOUCHED, upgradesKubelet: false }, EARLY],
  ],
])('a host that fails early is unchanged if %s', (_when, attempts) => {
  expect(isUnchanged(after(...attempts))).toBe(true);
});

test.each<[string, readonly Partial<Report>[]]>([
  ['the same attempt has changed it', [TOUCHED]],
  ['an earlier rollout has changed it', [TOUCHED, EARLY]],
  ['two rollouts lie in between', [TOUCHED, { rollout: 'b' }, EARLY]],
  [
    'since then only certificates were renewed, or kubeadm alone was upgraded',
    [TOUCHED, { rollout: 'b', state: 'finished', upgradesKubelet: false }, EARLY],
  ],
])('a host that fails early is not unchanged if %s', (_when, attempts) => {
  expect(isUnchanged(after(...attempts))).toBe(false);
});

test('nobody knows what was before the report of an earlier release, so the host is not unchanged', () => {
  const { touchedBefore: _, upgradesKubelet: __, ...old } = REPORT;
  expect(isUnchanged(old)).toBe(false);
  const { metadata } = reportPatch(old) as { metadata: { annotations: Record<string, string> } };
  const node = buildNode('w1', { annotations: metadata.annotations });
  expect(foundOn(node, { rollout: 'b', target: 'workers/w1' }).touchedBefore).toBe(true);
});
