/** Tests whole waits for waves: for their settle time and for their approval, with what is asked and when. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { answered, NEVER, UNASKED } from '../model/asked.ts';
import type { Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { WaveRule } from '../policy/rollout-policy.ts';
import { approvalWait, unapprovedWaves } from './wave-approval.ts';
import { waveCheck, wavesOf } from './waves.ts';

const CANARY: WaveRule = { selector: { matchLabels: { canary: 'true' } } };
const SECOND: WaveRule = { selector: { matchLabels: { second: 'true' } } };
const FACTS = { w1: { labels: { canary: 'true' } }, w2: { labels: { second: 'true' } } };

function contextOf(waves: readonly WaveRule[], targets: readonly Target[], now = T0) {
  const stage = buildStage('worker', targets);
  const snapshot = buildSnapshot(buildRollout([stage]), FACTS);
  return { context: { snapshot, policy: buildPolicy({ name: 'slow', waves }), now }, stage };
}

const ended = (name: string, since: string): Target => buildTarget(name, 'done', { since });

function waitFor(name: string, ...given: Parameters<typeof contextOf>) {
  const { context, stage } = contextOf(...given);
  const target = stage.targets.find((each) => each.name === name);
  return target && waveCheck(context, stage)(target);
}

const w3 = buildTarget('w3', 'pending', { since: later(9 * HOUR) });

test('a wave waits for the settle time of the wave before it', () => {
  const settling = [{ ...CANARY, settleMs: HOUR }];
  expect(waitFor('w3', settling, [ended('w1', later(MINUTE)), w3])).toEqual({
    kind: 'wait',
    reason: { code: 'WaveSettles', message: 'wave 1 settles for 1 h before wave 2 starts' },
    ends: `the settle time is over, at ${later(HOUR + MINUTE)}`,
    recheckMs: HOUR + MINUTE,
    until: later(HOUR + MINUTE),
    gate: 'waves',
    ofRollout: true,
  });
  expect(
    waitFor('w3', settling, [ended('w1', later(MINUTE)), w3], T0 + HOUR + MINUTE),
  ).toBeUndefined();
});

test('a wave waits for the latest end of all waves before it, and not for its own', () => {
  const settling = [
    { ...CANARY, settleMs: HOUR },
    { ...SECOND, settleMs: MINUTE },
  ];
  const targets = [ended('w1', later(0)), ended('w2', later(HOUR)), w3];
  expect(waitFor('w3', settling, targets)?.reason.message).toBe(
    'wave 2 settles for 1 min before wave 3 starts',
  );
  expect(waitFor('w2', settling, targets)?.reason.message).toBe(
    'wave 1 settles for 1 h before wave 2 starts',
  );
  expect(waitFor('w1', settling, targets)).toBeUndefined();
  const several = [ended('w1', later(0)), ended('w1', later(MINUTE)), w3];
  expect(waitFor('w3', [{ ...CANARY, settleMs: HOUR }], several)).toMatchObject({
    until: later(HOUR + MINUTE),
  });
});

test('times that are none, and targets that have not started, delay no wave', () => {
  const settling = [{ ...CANARY, settleMs: HOUR }];
  expect(waitFor('w3', settling, [ended('w1', 'soon'), w3])).toBeUndefined();
  const waiting = buildTarget('w1', 'pending', { since: later(9 * HOUR) });
  expect(waitFor('w3', settling, [waiting, w3])).toBeUndefined();
});

test('a target in no wave waits for none', () => {
  const { context, stage } = contextOf(
    [{ ...CANARY, settleMs: HOUR }],
    [ended('w1', later(0)), w3],
  );
  expect(waveCheck(context, stage)(buildTarget('other'))).toBeUndefined();
  const controllers = buildStage('controller', ['c1']);
  expect(waveCheck(context, controllers)(buildTarget('c1'))).toBeUndefined();
});

test.each<[string, WaveRule, number[]]>([
  ['no target', { count: 0 }, [0, 3]],
  ['a part of the targets', { count: 1 }, [1, 2]],
  ['exactly all targets', { count: 3 }, [3]],
  ['a share, of which a count is stronger', { count: 2, percent: 1 }, [2, 1]],
])('a wave may have %s', (_title, rule, sizes) => {
  const { context, stage } = contextOf(
    [rule],
    ['a', 'b', 'c'].map((name) => buildTarget(name)),
  );
  expect(wavesOf(context, stage)?.members.map(({ length }) => length)).toEqual(sizes);
});

test('the members that a count selects stay the same in each version of Refit', () => {
  const names = Array.from({ length: 10 }, (_, index) => `w${index}`);
  const { context, stage } = contextOf(
    [{ count: 3 }],
    names.map((name) => buildTarget(name)),
  );
  expect(wavesOf(context, stage)?.members[0]?.map(({ name }) => name)).toEqual(['w2', 'w4', 'w6']);
});

const APPROVED = 'somebody approves the wave with `refit approve`';
const NEEDS = 'wave 1 needs approval by UpgradePolicy slow';

function approvalIn(
  decisions: Snapshot['plan']['decisions'],
  waves: readonly WaveRule[] = [{ needsApproval: true }],
) {
  const { context } = contextOf(waves, [w3]);
  return { ...context, snapshot: withParts(context.snapshot, { plan: { decisions } }) };
}

const NONE = { plan: 'table/plan', place: 'ns/p', exists: true, approvals: [], accepted: [] };

test('a wait for an approval says what is asked and when the approvals are read again', () => {
  const unapproved = { kind: 'wait', unapproved: 1 };
  expect(approvalWait(approvalIn(NEVER), 0)).toEqual({
    ...unapproved,
    reason: { code: 'WaveNeedsApproval', message: NEEDS },
    ends: APPROVED,
  });
  expect(approvalWait(approvalIn(UNASKED), 0)).toEqual({
    ...unapproved,
    reason: { code: 'WaveNeedsApproval', message: `${NEEDS}; its NodeRollout is being read` },
    ends: APPROVED,
    isPassing: true,
    probe: { kind: 'decisions' },
  });
  expect(approvalWait(approvalIn(answered(NONE)), 0)).toEqual({
    ...unapproved,
    reason: { code: 'WaveNeedsApproval', message: NEEDS },
    ends: 'somebody approves the wave: refit approve table/plan --wave 1',
    recheckMs: 5000,
  });
});

test('the waves without an approval have their numbers', () => {
  const waves = [{ needsApproval: true }, CANARY, { needsApproval: true }];
  expect(unapprovedWaves(approvalIn(answered(NONE), waves))).toEqual([1, 3]);
  expect(unapprovedWaves({ ...approvalIn(NEVER), policy: buildPolicy() })).toEqual([]);
  expect(approvalWait({ ...approvalIn(NEVER), policy: buildPolicy() }, 0)).toBeUndefined();
  expect(approvalWait(approvalIn(NEVER), 7)).toBeUndefined();
});
