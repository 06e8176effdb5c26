/** Shows that `refit why NODE` names the cause of this node if a plan is refused because of several nodes. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt, recorded, statusOf } from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { mediumOf } from '../output.ts';
import { whyLines } from './why-command.ts';

const LOOK = { hasColours: false, size: () => ({ columns: 400, rows: 24 }) };
const onArch = (name: string, arch: string) =>
  buildNode(name, { labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': arch } });

async function why(node: string, status?: Plan['status']): Promise<string> {
  const update = buildUpdate({ targets: { workers: listed('w1', 'w2', 'w3', 'w4') } });
  const plan = buildPlan({ commands: [{ k0supdate: update }] }, status);
  const workers = [onArch('w1', 'riscv64'), onArch('w2', 'arm'), onArch('w3', 'amd64')];
  const plans = await lookAt([plan], [], workers, T0 + MINUTE);
  const seen = { leader: { state: 'held', holder: 'a', since: later(0) } as const, plans };
  return whyLines(seen, node, T0 + MINUTE, mediumOf(LOOK)).join('\n');
}

const REFUSED = statusOf(
  'IncompleteTargets',
  [],
  recorded({
    w1: 'SignalMissingPlatform',
    w2: 'SignalMissingPlatform',
    w3: 'SignalPending',
    w4: 'SignalMissingNode',
  }),
);
const PLATFORM = 'Add a download for the platform of the node to the plan';

test.each<[string, string, Plan['status']]>([
  ['w1', 'not started: w1 is linux-riscv64; the plan has downloads for linux-amd64', undefined],
  ['w2', 'not started: w2 is linux-arm; the plan has downloads for linux-amd64', undefined],
  ['w4', 'not started: w4 does not exist as a worker', undefined],
  ['w1', 'not started: w1 is linux-riscv64; the plan has downloads for linux-amd64', REFUSED],
  ['w2', 'not started: w2 is linux-arm; the plan has downloads for linux-amd64', REFUSED],
  ['w4', 'not started: w4 does not exist as a worker', REFUSED],
])('refit why %s says "%s" for a plan with the status %j', async (node, line, status) => {
  const text = await why(node, status);
  expect(text).toContain(line);
  const others = ['w1', 'w2', 'w3', 'w4'].filter((name) => name !== node);
  for (const other of others) expect(text).not.toMatch(new RegExp(`\\b${other}\\b`));
  if (node === 'w4') expect(text).not.toContain(PLATFORM);
  else expect(text).toContain(PLATFORM);
});

test('refit why NODE names the nodes because of which the plan is refused, if this node itself could start', async () => {
  const text = await why('w3');
  expect(text).toContain('w1 is linux-riscv64');
  expect(text).toContain('w4 does not exist as a worker');
});
