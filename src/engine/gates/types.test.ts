/**
 * Tests that the input of gates consists only of the snapshot and not of other parts of a decision, and how long a
 * target is expected to take.
 */

import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot, type KnownFacts } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { Pace } from '../model/snapshot.ts';
import { gateInput } from './types.ts';

test('what else a decision holds neither reaches a gate nor hides a fact', () => {
  const stage = buildStage('worker', ['n1']);
  const snapshot = buildSnapshot(buildRollout([stage]));
  const more = { plan: { metadata: { name: 'plan' } }, pace: 'of something else' };
  const context = {
    snapshot,
    stage,
    target: buildTarget('n1'),
    policy: buildPolicy(),
    now: T0,
    ...more,
  };
  const input = gateInput(context, 1);
  expect(input).not.toHaveProperty('snapshot');
  expect(input.plan).toBe(snapshot.plan);
  expect(input.pace).toBe(snapshot.pace);
});

const UNKNOWN = { kind: 'unknown' } as const;
const ofStage = (mostMsByStage: Readonly<Record<string, number>>): Pace => ({
  kind: 'earlier',
  mostMsByStage,
});
const measured = (ms: number): Pace => ({
  kind: 'measured',
  mostMs: ms,
  usualMs: ms,
  fastMs: ms,
});

test.each<[string, Pace, KnownFacts, number, number | undefined]>([
  ['nothing is known', UNKNOWN, {}, 9, undefined],
  ['its own last time', ofStage({ 'worker/0': 3 }), { earlierMs: 5 }, 9, 5],
  ['a node without one: that of its stage', ofStage({ 'worker/0': 3 }), {}, 9, 3],
  ['not that of another stage', ofStage({ other: 3 }), {}, 9, undefined],
  ['nodes of this plan count before', measured(4), { earlierMs: 5 }, 9, 4],
  ['never more than its deadline', UNKNOWN, { earlierMs: 5 }, 2, 2],
])('how long a target may take: %s', (_, pace, facts, targetDeadlineMs, expected) => {
  const stage = buildStage('worker', ['n1'], { id: 'worker/0' });
  const [target = buildTarget('n1')] = stage.targets;
  const snapshot = withParts(buildSnapshot(buildRollout([stage]), { [target.key]: facts }), {
    pace,
  });
  const policy = buildPolicy({ targetDeadlineMs });
  expect(gateInput({ snapshot, stage, target, policy, now: T0 }, 1).expectedMs).toBe(expected);
});
