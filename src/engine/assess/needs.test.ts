/** Tests which probes a turn sends, and when the next turn is if no watch shows a change. */

import { expect, test } from 'vitest';
import { NONE, succeeded, working } from '../../../test/support/builders/observations.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { HOUR, later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { UNASKED, unanswered } from '../model/asked.ts';
import { because } from '../model/reasons.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { assess } from './assess.ts';
import { type Needs, needsOf } from './needs.ts';

const POLICY = buildPolicy({ targetDeadlineMs: 2 * HOUR });
const NODE = { name: 'w1', unschedulable: false, cordonOwner: undefined, taintOwner: undefined };
const NOTHING: Needs = { probes: [], recheckAfterMs: undefined };

function needs(snapshot: Snapshot, policy: RolloutPolicy = POLICY, now = T0 + MINUTE): Needs {
  return needsOf(assess(snapshot, policy, now));
}

const controllers = buildStage('controller', [buildTarget('c1', 'intended'), 'c2']);

test('a probe is due once, although several targets need its answer', () => {
  const upgraded = { observation: succeeded() };
  const stage = buildStage('controller', [
    buildTarget('c1', 'intended'),
    buildTarget('c2', 'intended'),
  ]);
  const snapshot = buildSnapshot(buildRollout([stage]), { c1: upgraded, c2: upgraded }, 'unasked');
  expect(needs(snapshot).probes).toEqual([{ kind: 'control-plane' }]);
});

test('each node has its own probe for what blocks its drain', () => {
  const stage = buildStage('worker', ['w1', 'w2'], { maxInFlight: 2 });
  const facts = {
    w1: { node: NODE, drainPreview: UNASKED },
    w2: { node: { ...NODE, name: 'w2' }, drainPreview: UNASKED },
  };
  expect(needs(buildSnapshot(buildRollout([stage]), facts)).probes).toEqual([
    { kind: 'drain-preview', node: 'w1' },
    { kind: 'drain-preview', node: 'w2' },
  ]);
});

test('a probe without an answer is not due now, and the next turn is when it is repeated', () => {
  const stage = buildStage('worker', ['w1']);
  const reason = because('CannotDecide', 'no answer');
  const facts = { w1: { node: NODE, drainPreview: unanswered({ reason, recheckMs: 2000 }) } };
  const snapshot = buildSnapshot(buildRollout([stage]), facts);
  expect(needs(snapshot)).toEqual({ probes: [], recheckAfterMs: 2000 });
});

test('a new plan needs only the check of its preconditions', () => {
  const rollout = buildRollout([controllers], { phase: 'new' });
  const snapshot = withParts(buildSnapshot(rollout, {}, 'unasked'), {
    plan: { preconditions: UNASKED },
  });
  expect(needs(snapshot).probes).toEqual([{ kind: 'preconditions' }]);
});

test('a plan that has ended needs nothing, although its targets have a deadline', () => {
  const rollout = buildRollout([controllers], { phase: 'failed' });
  expect(needs(buildSnapshot(rollout, { c1: { observation: working('x') } }))).toEqual(NOTHING);
});

test.each<[string, object, number | undefined]>([
  ['was not signalled, so it has no deadline yet', { observation: NONE }, undefined],
  ['works: its deadline', { observation: working('x') }, 2 * HOUR - MINUTE],
])('the next turn of a plan whose only target %s', (_, facts, recheckAfterMs) => {
  const stage = buildStage('worker', [buildTarget('w1', 'intended', { since: later(0) })]);
  const snapshot = buildSnapshot(buildRollout([stage]), { w1: facts });
  expect(needs(snapshot).recheckAfterMs).toBe(recheckAfterMs);
});

test('a deadline that has passed without an effect causes no further turn', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'intended', { since: later(0) })]);
  const snapshot = buildSnapshot(buildRollout([stage]), { w1: { observation: working('x') } });
  expect(needs(snapshot, POLICY, T0 + 3 * HOUR)).toEqual(NOTHING);
});

test.each<[string, boolean, number | undefined]>([
  ['the next turn is when the failed node no longer counts as working', false, 2 * HOUR - MINUTE],
  ['no next turn is planned if only a retry frees the slot', true, undefined],
])('targets wait for the slot of a failed node that still works: %s', (_, held, expected) => {
  const failed = buildTarget('w1', 'failed', { since: later(0) });
  const stage = buildStage('worker', [failed, 'w2'], { maxInFlight: 1, failedHoldSlots: held });
  const facts = { w1: { observation: working('x') } };
  const policy = buildPolicy({ maxFailures: 1 });
  expect(needs(buildSnapshot(buildRollout([stage]), facts), policy).recheckAfterMs).toBe(expected);
});
