/** Tests the waves of an UpgradePolicy: which nodes are in which wave, and when the next wave starts. */
import { describe, expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RecordedState, Stage } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy, WaveRule } from '../policy/rollout-policy.ts';
import { wavesOf } from './waves.ts';

const CANARY: WaveRule = { selector: { matchLabels: { canary: 'true' } } };
const canary: Partial<TargetFacts> = { labels: { canary: 'true' } };

function policyOf(waves: readonly WaveRule[], more: Partial<RolloutPolicy> = {}): RolloutPolicy {
  return buildPolicy({ name: 'slow', waves, ...more });
}

function stageOf(states: Readonly<Record<string, RecordedState>>, maxInFlight = 9): Stage {
  const targets = Object.entries(states).map(([name, state]) =>
    buildTarget(name, state, { since: later(0) }),
  );
  return buildStage('worker', targets, { maxInFlight });
}

const names = (count: number): Record<string, RecordedState> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`w${index}`, 'pending']));

function started(snapshot: Snapshot, policy: RolloutPolicy, now = T0): string[] {
  const { record = snapshot.rollout } = decide(snapshot, policy, now);
  return record.stages.flatMap(({ targets }) =>
    targets.filter(({ state }) => state === 'intended').map(({ name }) => name),
  );
}

describe('members', () => {
  const membersOf = (waves: readonly WaveRule[], count: number, facts = {}): string[][] => {
    const stage = stageOf(names(count));
    const snapshot = buildSnapshot(buildRollout([stage]), facts);
    const divided = wavesOf({ snapshot, policy: policyOf(waves) }, stage);
    return (divided?.members ?? []).map((wave) => wave.map(({ name }) => name));
  };

  test('a selector takes the nodes with its labels, and the last wave has the others', () => {
    expect(membersOf([CANARY], 3, { w1: canary })).toEqual([['w1'], ['w0', 'w2']]);
  });

  test('a rule without size at the end takes the rest, and adds no wave', () => {
    expect(membersOf([CANARY, { settleMs: HOUR }], 3, { w1: canary })).toHaveLength(2);
  });

  test.each([
    ['a count', { count: 2 }, 10, 2],
    ['a share', { percent: 25 }, 10, 2],
    ['a small share is one node', { percent: 1 }, 10, 1],
    ['a count above all', { count: 99 }, 3, 3],
  ])('%s', (_name, rule, total, expected) => {
    expect(membersOf([rule], total)[0]).toHaveLength(expected);
  });

  test('the draw is the same for each leader and each state, and another for another plan', () => {
    const first = membersOf([{ count: 3 }], 20);
    expect(membersOf([{ count: 3 }], 20)).toEqual(first);
    const stage = stageOf({ ...names(20), w3: 'done' });
    const rollout = buildRollout([stage]);
    const policy = policyOf([{ count: 3 }]);
    const moved = wavesOf({ snapshot: buildSnapshot(rollout), policy }, stage);
    expect(moved?.members.map((wave) => wave.map(({ name }) => name))).toEqual(first);
    const other = { ...rollout, source: { ...rollout.source, uid: 'another' } };
    const drawn = wavesOf({ snapshot: buildSnapshot(other), policy }, stage);
    expect(drawn?.members[0]?.map(({ name }) => name)).not.toEqual(first[0]);
  });

  test('controllers, and workers with the label of the control plane, are in no wave', () => {
    const controllers = buildStage('controller', ['c1']);
    const snapshot = buildSnapshot(buildRollout([controllers]));
    expect(wavesOf({ snapshot, policy: policyOf([{ count: 1 }]) }, controllers)).toBeUndefined();
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    expect(membersOf([{ percent: 100 }], 2, { w0: { labels } })).toEqual([['w1']]);
  });
});

describe('the next wave', () => {
  const facts = { w1: canary };

  test('starts once all of the wave before it are done', () => {
    const before = buildSnapshot(buildRollout([stageOf(names(3))]), facts);
    expect(started(before, policyOf([CANARY]))).toEqual(['w1']);
    const states = { ...names(3), w1: 'done' } as const;
    const after = buildSnapshot(buildRollout([stageOf(states)]), facts);
    expect(started(after, policyOf([CANARY]))).toEqual(['w0', 'w2']);
  });

  test('waits for the settle time, and says until when', () => {
    const states = { ...names(3), w1: 'done' } as const;
    const snapshot = buildSnapshot(buildRollout([stageOf(states)]), facts);
    const policy = policyOf([{ ...CANARY, settleMs: HOUR }]);
    expect(started(snapshot, policy, T0 + HOUR - 1)).toEqual([]);
    expect(decide(snapshot, policy, T0 + HOUR - 1000).waits[0]).toMatchObject({
      gate: 'waves',
      reason: {
        code: 'WaveSettles',
        message: 'wave 1 settles for 1 h before wave 2 starts',
      },
    });
    expect(started(snapshot, policy, T0 + HOUR)).toEqual(['w0', 'w2']);
  });

  test('waits for the longest settle time of all waves before it, also past an empty wave', () => {
    const states = { ...names(3), w1: 'done' } as const;
    const snapshot = buildSnapshot(buildRollout([stageOf(states)]), facts);
    const none: WaveRule = { selector: { matchLabels: { nobody: 'true' } } };
    const policy = policyOf([{ ...CANARY, settleMs: HOUR }, none]);
    expect(started(snapshot, policy, T0 + HOUR - 1000)).toEqual([]);
    expect(started(snapshot, policy, T0 + HOUR)).toEqual(['w0', 'w2']);
  });

  test('the order sorts inside a wave', () => {
    const zones = { w0: { labels: { zone: 'b' } }, w1: canary, w2: { labels: { zone: 'a' } } };
    const states = { ...names(3), w1: 'done' } as const;
    const snapshot = buildSnapshot(buildRollout([stageOf(states)]), zones);
    expect(started(snapshot, policyOf([CANARY], { order: ['zone'] }))).toEqual(['w2']);
  });
});

describe('the failure budget', () => {
  const failed = { ...names(4), w0: 'failed', w1: 'done' } as const;
  const facts = { w0: canary, w1: canary };

  test('of a wave lets the next one start within it, whatever the budget of the plan', () => {
    const snapshot = buildSnapshot(buildRollout([stageOf(failed)]), facts);
    const policy = policyOf([{ ...CANARY, maxFailures: { percent: 50 } }]);
    expect(started(snapshot, policy)).toEqual(['w2', 'w3']);
  });

  test('of a wave stops the plan beyond it', () => {
    const snapshot = buildSnapshot(buildRollout([stageOf(failed)]), facts);
    const policy = policyOf([{ ...CANARY, maxFailures: { nodes: 0 } }], { maxFailures: 9 });
    expect(decide(snapshot, policy, T0).record?.phase).toBe('failed');
  });

  test('of a wave does not count where failed targets keep their slots: that of the plan does', () => {
    const stage = { ...stageOf(failed), failedHoldSlots: true };
    const snapshot = buildSnapshot(buildRollout([stage]), facts);
    const policy = policyOf([{ ...CANARY, maxFailures: { nodes: 0 } }], { maxFailures: 1 });
    expect((decide(snapshot, policy, T0).record ?? snapshot.rollout).phase).toBe('running');
  });

  test('of a wave does not cover failures of another wave', () => {
    const states = { ...names(4), w0: 'done', w1: 'done', w2: 'failed' } as const;
    const snapshot = buildSnapshot(buildRollout([stageOf(states)]), facts);
    const policy = policyOf([{ ...CANARY, maxFailures: { nodes: 1 } }]);
    expect(decide(snapshot, policy, T0).record?.phase).toBe('failed');
  });

  test.each([
    [20, 'running'],
    [19, 'failed'],
  ])('as a share of %i percent of ten workers, two of which failed: %s', (percent, phase) => {
    const states = { ...names(10), w0: 'failed', w1: 'failed' } as const;
    const snapshot = buildSnapshot(buildRollout([stageOf(states)]));
    const policy = buildPolicy({ name: 'slow', maxFailures: 0, maxFailuresPercent: percent });
    expect((decide(snapshot, policy, T0).record ?? snapshot.rollout).phase).toBe(phase);
  });

  test('failures one after the other stop the plan within the budget, a success between them does not', () => {
    const ended = (states: readonly RecordedState[]): Snapshot => {
      const targets = states.map((state, index) =>
        buildTarget(`w${index}`, state, { since: later(1000 * index) }),
      );
      return buildSnapshot(buildRollout([buildStage('worker', [...targets, buildTarget('w9')])]));
    };
    const policy = buildPolicy({ name: 'slow', maxFailures: 9, maxConsecutiveFailures: 1 });
    const phaseOf = (snapshot: Snapshot) =>
      (decide(snapshot, policy, T0 + HOUR).record ?? snapshot.rollout).phase;
    expect(phaseOf(ended(['done', 'failed', 'failed']))).toBe('failed');
    expect(phaseOf(ended(['failed', 'done', 'failed']))).toBe('running');
  });

  test('with a pause instead of an end, nothing starts and the plan stays open', () => {
    const snapshot = buildSnapshot(buildRollout([stageOf(failed)]));
    const policy = buildPolicy({ name: 'slow', pausesOnFailure: true });
    const { record, waits } = decide(snapshot, policy, T0);
    expect([record, started(snapshot, policy)]).toEqual([undefined, []]);
    expect(waits[0]).toMatchObject({ reason: { code: 'PausedByFailures' } });
    expect(waits[0]?.ends).toContain('refit retry NODE');
  });
});

test('spread takes the nodes of each zone in turn', () => {
  const zone = (value: string) => ({ labels: { zone: value } });
  const facts = { w0: zone('a'), w1: zone('a'), w2: zone('b'), w3: zone('b') };
  const snapshot = buildSnapshot(buildRollout([stageOf(names(4), 2)]), facts);
  expect(started(snapshot, buildPolicy({ name: 'slow', spread: 'zone' }))).toEqual(['w0', 'w2']);
});

test('spread takes the next node of another zone, also if one node starts at a time', () => {
  const zone = (value: string) => ({ labels: { zone: value } });
  const facts = { w0: zone('a'), w1: zone('a'), w2: zone('b'), w3: zone('b') };
  const policy = buildPolicy({ name: 'slow', spread: 'zone' });
  const after = (...done: readonly string[]) => {
    const isDone = Object.fromEntries(done.map((name) => [name, 'done' as const]));
    const stage = stageOf({ ...names(4), ...isDone }, 1);
    return started(buildSnapshot(buildRollout([stage]), facts), policy);
  };
  expect(after('w0')).toEqual(['w2']);
  expect(after('w0', 'w2')).toEqual(['w1']);
  expect(after('w0', 'w1')).toEqual(['w2']);
});
