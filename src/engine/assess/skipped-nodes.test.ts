/** `drain.onDeadline: SkipNode`: a node that cannot be drained is left out, and the plan goes on. */
import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeView, Snapshot, TargetFacts } from '../model/decision.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

const NODE: NodeView = {
  name: 'w1',
  unschedulable: true,
  cordonOwner: undefined,
  taintOwner: undefined,
};
const { drain } = buildPolicy();
const POLICY = buildPolicy({ name: 'nightly', drain: { ...drain, onDeadline: 'skipNode' } });

/** A node whose drain began at the start and is blocked. */
const BLOCKED: Partial<TargetFacts> = {
  node: NODE,
  drainDelegation: true,
  drain: { kind: 'draining', since: T0, left: 1, blockedBy: 'PodDisruptionBudget a/b' } as never,
  observation: {
    ...working('Cordoning'),
    part: 'drain',
    waitsFor: 'drain',
    cancellable: true,
  } as never,
};

function draining(more: Partial<Snapshot> = {}): Snapshot {
  const stage = buildStage('worker', [
    buildTarget('w1', 'intended', { since: later(0) }),
    buildTarget('w2'),
  ]);
  return { ...buildSnapshot(buildRollout([stage]), { w1: BLOCKED }), canSkip: true, ...more };
}

function states(snapshot: Snapshot, policy: RolloutPolicy, now: number): string[] {
  const { record = snapshot.rollout } = decide(snapshot, policy, now);
  return record.stages.flatMap(({ targets }) => targets.map(({ state }) => state));
}

test('at the deadline of the drain the node is skipped, and keeps its slot until its work has ended', () => {
  expect(states(draining(), POLICY, T0 + HOUR - 1)).toEqual(['intended', 'pending']);
  expect(states(draining(), POLICY, T0 + HOUR)).toEqual(['skipped', 'pending']);
});

test('the next node starts once the work on the skipped one has ended', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'skipped'), buildTarget('w2')]);
  const ended = { ...buildSnapshot(buildRollout([stage])), canSkip: true };
  expect(states(ended, POLICY, T0 + HOUR)).toEqual(['skipped', 'intended']);
});

test('a record that cannot hold it keeps a failure', () => {
  const policy = { ...POLICY, maxFailures: 1 };
  expect(states(draining({ canSkip: undefined }), policy, T0 + HOUR)).toEqual([
    'failed',
    'pending',
  ]);
});

test('the work on a skipped node is cancelled, which uncordons it', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'skipped'), buildTarget('w2', 'pending')]);
  const snapshot = { ...buildSnapshot(buildRollout([stage]), { w1: BLOCKED }), canSkip: true };
  const { nodeActions } = decide(snapshot, POLICY, T0 + HOUR);
  expect(nodeActions).toContainEqual(expect.objectContaining({ kind: 'cancel', node: 'w1' }));
});

test('more skipped nodes than maxBlockedNodes stop the plan, and the reason says so', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'skipped'), buildTarget('w2')]);
  const snapshot = { ...buildSnapshot(buildRollout([stage])), canSkip: true };
  const end = decide(snapshot, { ...POLICY, maxBlocked: 0 }, T0).record;
  expect([end?.phase, end?.stages[0]?.targets[1]?.state]).toEqual(['incomplete', 'pending']);
  expect(states(snapshot, { ...POLICY, maxBlocked: 1 }, T0)).toEqual(['skipped', 'intended']);
});

const HOPELESS = {
  obstacles: [],
  refused: [{ pod: 'a/b', reason: 'is unmanaged' }],
  evictable: 1,
} as never;

test('a node whose drain cannot succeed is skipped before it starts, once nothing else moves', () => {
  const stage = buildStage('worker', [
    buildTarget('w1', 'pending', { since: later(0) }),
    buildTarget('w2', 'done', { since: later(MINUTE) }),
  ]);
  const facts = { w1: { node: NODE, drainPreview: HOPELESS } };
  const snapshot = { ...buildSnapshot(buildRollout([stage]), facts), canSkip: true };
  expect(states(snapshot, POLICY, T0 + HOUR)).toEqual(['pending', 'done']);
  const { record } = decide(snapshot, POLICY, T0 + HOUR + MINUTE);
  expect([record?.phase, record?.reason?.message]).toEqual([
    'done',
    '1 of 2 targets done; skipped: w1',
  ]);
});

test('a retry takes a skipped node up, and the plan runs again', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'skipped', { since: later(0) })]);
  const rollout = buildRollout([stage], { phase: 'done' });
  const controls = { paused: false, retries: new Map([['w1', T0 + MINUTE]]) };
  const snapshot = { ...buildSnapshot(rollout), controls, canSkip: true };
  const { record } = decide(snapshot, POLICY, T0 + MINUTE);
  expect([record?.phase, record?.stages[0]?.targets[0]?.state]).toEqual(['running', 'intended']);
});
