/** Tests `drain.onDeadline: SkipNode`: a node that cannot be drained is left out, and the plan continues. */

import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { working } from '../../../test/support/builders/observations.ts';
import { type SnapshotChanges, withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { answered } from '../model/asked.ts';
import type { NodeView, TargetFacts } from '../model/facts.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

const NODE: NodeView = {
  name: 'w1',
  unschedulable: true,
  cordonOwner: undefined,
  taintOwner: undefined,
};
const { drain } = buildPolicy();
const POLICY = buildPolicy({ name: 'nightly', drain: { ...drain, onDeadline: 'skipNode' } });

/** The facts of a node whose drain began at T0 and is blocked. */
const BLOCKED: Partial<TargetFacts> = {
  node: NODE,
  drainDelegation: answered(true),
  drain: { kind: 'draining', since: T0, left: 1, blockedBy: 'PodDisruptionBudget a/b' } as never,
  observation: {
    ...working('Cordoning'),
    part: 'drain',
    waitsFor: 'drain',
    cancellable: true,
  } as never,
};

function draining(more: SnapshotChanges = {}): Snapshot {
  const stage = buildStage('worker', [
    buildTarget('w1', 'intended', { since: later(0) }),
    buildTarget('w2'),
  ]);
  const snapshot = buildSnapshot(buildRollout([stage]), { w1: BLOCKED });
  return withParts(snapshot, { abilities: { canSkip: true } }, more);
}

function states(snapshot: Snapshot, policy: RolloutPolicy, now: number): string[] {
  const { record = snapshot.rollout } = decide(snapshot, policy, now);
  return record.stages.flatMap(({ targets }) => targets.map(({ state }) => state));
}

test('a node is skipped at the deadline of its drain, and keeps its slot until its work has ended', () => {
  expect(states(draining(), POLICY, T0 + HOUR - 1)).toEqual(['intended', 'pending']);
  expect(states(draining(), POLICY, T0 + HOUR)).toEqual(['skipped', 'pending']);
});

test('the next node starts once the work on the skipped one has ended', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'skipped'), buildTarget('w2')]);
  const ended = withParts(buildSnapshot(buildRollout([stage])), { abilities: { canSkip: true } });
  expect(states(ended, POLICY, T0 + HOUR)).toEqual(['skipped', 'intended']);
});

test('a node fails at the deadline of its drain where the record cannot hold skipped nodes', () => {
  const policy = { ...POLICY, maxFailures: 1 };
  expect(states(draining({ abilities: { canSkip: false } }), policy, T0 + HOUR)).toEqual([
    'failed',
    'pending',
  ]);
});

test('the work on a skipped node is cancelled, which uncordons it', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'skipped'), buildTarget('w2', 'pending')]);
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), { w1: BLOCKED }), {
    abilities: { canSkip: true },
  });
  const { nodeActions } = decide(snapshot, POLICY, T0 + HOUR);
  expect(nodeActions).toContainEqual(expect.objectContaining({ kind: 'cancel', node: 'w1' }));
});

test('more skipped nodes than maxBlockedNodes stop the plan, and the reason says so', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'skipped'), buildTarget('w2')]);
  const snapshot = withParts(buildSnapshot(buildRollout([stage])), {
    abilities: { canSkip: true },
  });
  const end = decide(snapshot, { ...POLICY, maxBlocked: 0 }, T0).record;
  expect([end?.phase, end?.stages[0]?.targets[1]?.state]).toEqual(['incomplete', 'pending']);
  expect(states(snapshot, { ...POLICY, maxBlocked: 1 }, T0)).toEqual(['skipped', 'intended']);
});

const BLOCKED_PREVIEW: Partial<TargetFacts> = {
  node: { ...NODE, unschedulable: false },
  drainPreview: answered({
    evictable: 1,
    obstacles: [],
    refused: [{ pod: 'a/b', reason: 'has no controller, so nothing would create it again' }],
  }),
};

function hopeless(count: number, blockedMs: number, more: SnapshotChanges = {}): Snapshot {
  const names = Array.from({ length: count }, (_, index) => `w${index}`);
  const facts = Object.fromEntries(names.map((name) => [name, { ...BLOCKED_PREVIEW, blockedMs }]));
  const stage = buildStage('worker', names, { maxInFlight: 1 });
  const snapshot = buildSnapshot(buildRollout([stage]), facts);
  return withParts(snapshot, { abilities: { canSkip: true } }, more);
}

test('a node whose drain stays blocked for the whole deadline is skipped before it starts', () => {
  expect(states(hopeless(1, HOUR - 1), POLICY, T0)).toEqual(['pending']);
  const { record } = decide(hopeless(1, HOUR), POLICY, T0);
  expect([record?.phase, record?.reason?.message]).toEqual([
    'done',
    '0 of 1 targets done; skipped: w0',
  ]);
});

test('a paused plan skips nobody', () => {
  const controls = { paused: true, retries: new Map() };
  expect(states(hopeless(1, HOUR, { plan: { controls } }), POLICY, T0)).toEqual(['pending']);
});

test('a crowd of blocked nodes ends the plan, although only some are asked in one decision', () => {
  const { record } = decide(hopeless(120, HOUR), POLICY, T0);
  expect([record?.phase, record?.reason?.code]).toEqual(['done', 'DoneWithSkipped']);
});

test('maxBlockedNodes stops the plan one node later, and the reason of the end says so', () => {
  const { record } = decide(hopeless(4, HOUR), { ...POLICY, maxBlocked: 1 }, T0);
  expect(record?.stages[0]?.targets.map(({ state }) => state)).toEqual([
    'skipped',
    'skipped',
    'pending',
    'pending',
  ]);
  expect(record?.reason?.message).toContain('more than maxBlockedNodes 1 of UpgradePolicy nightly');
});

test('a controller whose drain takes too long fails and stops the plan', () => {
  const controllers = buildStage('controller', [
    buildTarget('w1', 'intended', { since: later(0) }),
  ]);
  const rollout = buildRollout([controllers, buildStage('worker', ['w2'])]);
  const snapshot = withParts(buildSnapshot(rollout, { w1: BLOCKED }), {
    abilities: { canSkip: true },
  });
  expect(states(snapshot, POLICY, T0 + HOUR)).toEqual(['failed', 'pending']);
});

test('a retry takes a skipped node up, and the plan runs again', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'skipped', { since: later(0) })]);
  const rollout = buildRollout([stage], { phase: 'done' });
  const controls = { paused: false, retries: new Map([['w1', T0 + MINUTE]]) };
  const snapshot = withParts(buildSnapshot(rollout), {
    plan: { controls },
    abilities: { canSkip: true },
  });
  const { record } = decide(snapshot, POLICY, T0 + MINUTE);
  expect([record?.phase, record?.stages[0]?.targets[0]?.state]).toEqual(['running', 'intended']);
});
