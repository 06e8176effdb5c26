/**
 * Shows what `refit why` and `refit status` print about silences. They read the silences from the NodeRollout, where
 * the leader records them.
 */
import { expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import { silencingIn } from '../../engine/report/shown-silencing.ts';
import { mediumOf } from '../output.ts';
import type { Sources } from '../status/inspection-sources.ts';
import { whyLines, whyView } from './why-command.ts';

const NOW = T0 + 10 * MINUTE;
const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });
const PROBLEM = 'silence nodes of UpgradePolicy careful: am.example answered 503';

async function statusWith(
  silencing: Sources['silencing'],
  hasSilences = true,
  second: 'SignalPending' | 'SignalSent' = 'SignalPending',
) {
  const update = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
  const states = recorded({ w1: 'SignalSent', w2: second }, later(MINUTE));
  const silences = hasSilences ? [{ name: 'nodes', url: 'http://am.example' }] : [];
  const plans = await lookAt(
    [buildPlan({ commands: [{ k0supdate: update }] }, statusOf('SchedulableWait', [], states))],
    [buildControlNode('c1')],
    [buildNode('w1'), buildNode('w2')],
    NOW,
    buildViewParts({ silencing }, [buildUpgradePolicy('careful', { silences })]),
  );
  return { leader: { state: 'held', holder: 'a', since: later(0) } as const, plans };
}

const BAD = { isGood: false, message: PROBLEM, since: later(8 * MINUTE) };
const GOOD = { isGood: true, message: 'alerts about nodes in progress are silenced' };
const bad = async () => await Promise.resolve(BAD);

test('why says of a plan and of a node in progress that alerts are not silenced, and why', async () => {
  const status = await statusWith(bad);
  const line = `alerts  not silenced, for 2 min: ${PROBLEM}`;
  for (const node of [undefined, 'w1'])
    expect(whyLines(status, node, NOW, PIPE).join('\n')).toContain(line);
  expect(whyLines(status, 'w2', NOW, PIPE).join('\n')).not.toContain(PROBLEM);
  expect(whyView(status, 'w1').plans[0]?.silencing).toEqual(BAD);
  expect(whyView(status, 'w2').plans[0]?.silencing).toBeUndefined();
});

test('why says of a node in progress that its alerts are silenced', async () => {
  const status = await statusWith(async () => await Promise.resolve(GOOD));
  expect(whyLines(status, 'w1', NOW, PIPE).join('\n')).toContain(`alerts  ${GOOD.message}`);
});

const SILENCE = {
  node: 'w1',
  silence: 'nodes',
  server: 'am.example',
  id: 'id-1',
  since: later(8 * MINUTE),
  durationSeconds: 300,
};
const FAILED = {
  node: 'w2',
  silence: 'nodes',
  server: 'am.example',
  durationSeconds: 300,
  problem: 'answered 503',
};

test('why names the silence of a node that is silenced, and the problem of another node that is not', async () => {
  const shown = { ...BAD, silences: [FAILED, SILENCE] };
  const status = await statusWith(async () => await Promise.resolve(shown), true, 'SignalSent');
  const first = whyLines(status, 'w1', NOW, PIPE).join('\n');
  expect(first).toContain(
    'alerts  silenced for 2 min by nodes at am.example (id id-1), which ends 5 min after its last renewal',
  );
  expect(first).not.toContain('503');
  expect(whyLines(status, 'w2', NOW, PIPE).join('\n')).toContain(
    'alerts  not silenced by nodes at am.example: answered 503',
  );
  expect(whyView(status, 'w1').plans[0]?.silencing).toEqual({
    isGood: true,
    message: 'its alerts are silenced',
    since: SILENCE.since,
    silences: [{ ...SILENCE, target: 'w1' }],
  });
  expect(whyView(status, 'w2').plans[0]?.silencing).toMatchObject({
    isGood: false,
    message: 'silence nodes at am.example: answered 503',
    silences: [{ node: 'w2', target: 'w2', problem: 'answered 503' }],
  });
  expect(whyView(status, undefined).plans[0]?.silencing).toMatchObject(BAD);
});

test('a silence that could not be renewed is named, and a node that the leader has not looked at is not called silenced', async () => {
  const late = { ...SILENCE, problem: 'answered 503' };
  const shown = { ...GOOD, silences: [late] };
  const status = await statusWith(async () => await Promise.resolve(shown), true, 'SignalSent');
  expect(whyLines(status, 'w1', NOW, PIPE).join('\n')).toContain(
    'alerts  silence nodes at am.example (id id-1) could not be renewed, and ends soon: answered 503',
  );
  expect(whyLines(status, 'w2', NOW, PIPE).join('\n')).toContain(
    'alerts  not silenced: the leader has not looked for a silence of this node yet',
  );
});

test('a policy without silences asks nothing, and an answer that is refused is named', async () => {
  const without = await statusWith(bad, false);
  expect(whyLines(without, 'w1', NOW, PIPE).join('\n')).not.toContain(PROBLEM);
  const refused = await statusWith(async () => await Promise.reject(new Error('forbidden')));
  const lines = whyLines(refused, 'w1', NOW, PIPE).join('\n');
  expect(lines).toContain('unknown whether alerts are silenced: forbidden');
});

test('the silences of the NodeRollout are read with its condition', () => {
  const conditions = [{ type: 'Silenced', status: 'True', message: GOOD.message }];
  const status = { conditions, silences: [SILENCE] };
  const shown = { spec: { plan: { uid: 'u' } }, status } as unknown as NodeRollout;
  expect(silencingIn(shown, 'u')).toMatchObject({ ...GOOD, silences: [SILENCE] });
});

test('the condition of the NodeRollout counts for its own plan only', () => {
  const condition = { type: 'Silenced', status: 'False', message: PROBLEM };
  const shown = { spec: { plan: { uid: 'u' } }, status: { conditions: [condition] } };
  expect(silencingIn(shown as unknown as NodeRollout, 'u')).toMatchObject({
    isGood: false,
    message: PROBLEM,
  });
  expect(silencingIn(shown as unknown as NodeRollout, 'another')).toBeUndefined();
  expect(silencingIn(undefined, undefined)).toBeUndefined();
});
