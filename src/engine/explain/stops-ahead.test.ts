/** Tests which waits are known to come before a plan ends, so that no output tells the time that is left. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import { NO_CONTROLS } from '../model/controls.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { etaOf } from './progress.ts';
import { stopsAhead } from './stops-ahead.ts';

const PACE = { kind: 'measured', mostMs: 10 * MINUTE, usualMs: MINUTE, fastMs: MINUTE } as const;
const BLACKOUT = { from: T0 + 15 * MINUTE, to: T0 + HOUR };

/** A plan whose first worker is done, whose second is in progress, and whose last is pending, unless it says otherwise. */
function running(last: 'pending' | 'done' = 'pending', more: Partial<Snapshot> = {}): Snapshot {
  const stage = buildStage('worker', [
    buildTarget('w1', 'done', { since: later(0) }),
    buildTarget('w2', 'intended', { since: later(0) }),
    buildTarget('w3', last, { since: later(0) }),
  ]);
  return { ...buildSnapshot(buildRollout([stage])), pace: PACE, ...more };
}

test.each<[string, Snapshot, Partial<RolloutPolicy>, readonly string[]]>([
  ['nothing stops it', running(), {}, []],
  [
    'somebody paused it',
    withParts(running(), { plan: { controls: { ...NO_CONTROLS, paused: true } } }),
    {},
    ['Paused'],
  ],
  ['its policy pauses it', running(), { paused: true }, ['Paused']],
  ['a pause starts nothing that is left', running('done'), { paused: true }, []],
  ['a wave settles', running(), { waves: [{ count: 2, settleMs: 2 * HOUR }, {}] }, ['WaveSettles']],
  [
    'a wave needs an approval',
    running(),
    { waves: [{ count: 2 }, { needsApproval: true }] },
    ['WaveNeedsApproval'],
  ],
  ['a wave that has started needs none', running('done'), { waves: [{ needsApproval: true }] }, []],
  ['a blackout begins too soon', running(), { blackouts: [BLACKOUT] }, ['Blackout']],
  [
    'a blackout begins too soon, but it is not known how long nodes take',
    running('pending', { pace: { kind: 'unknown' } }),
    { blackouts: [BLACKOUT] },
    [],
  ],
])('what stops a plan before its end: %s', (_name, snapshot, more, expected) => {
  const assessment = assess(snapshot, buildPolicy(more), T0 + MINUTE);
  expect(stopsAhead(assessment)).toEqual(expected);
  const isTold = snapshot.pace.kind === 'measured' && expected.length === 0;
  expect(etaOf(assessment, []) !== undefined).toBe(isTold);
});
