/** Tests the expected end that a NodeRollout shows, and the time at which it was estimated. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, MINUTE, SECOND, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRollout, NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { assess } from '../assess/assess.ts';
import { explain } from '../explain/explain.ts';
import { readPlan } from '../explain/plan-reading.ts';
import { statusOf } from './node-rollout-status.ts';

const PACE = { kind: 'measured', fastMs: MINUTE, usualMs: 2 * MINUTE, mostMs: 3 * MINUTE } as const;

/** Returns the expected end in the status of a plan whose last node is in progress, `ms` after its start. */
function etaAt(ms: number, before?: NodeRolloutStatus['eta']): NodeRolloutStatus['eta'] {
  const stage = buildStage('worker', [
    buildTarget('w1', 'done'),
    buildTarget('w2', 'done'),
    buildTarget('w3', 'intended', { since: later(ms) }),
  ]);
  const snapshot = {
    ...buildSnapshot(buildRollout([stage], { phase: 'running' })),
    pace: PACE,
  };
  const assessment = assess(snapshot, buildPolicy(), T0 + ms);
  const reading = readPlan(assessment, { waits: explain(assessment).waits });
  const { kind, name, uid } = reading.plan.source;
  const previous: NodeRollout = {
    metadata: { name: 'plan' },
    spec: { plan: { apiVersion: 'v1', kind, name, uid } },
    status: before === undefined ? {} : { eta: before },
  };
  return statusOf({ reading }, previous, T0 + ms).eta;
}

const FIRST = {
  at: later(2 * MINUTE),
  earliest: later(MINUTE),
  latest: later(3 * MINUTE),
  asOf: later(0),
};

test('an expected end says when it was estimated', () => {
  expect(etaAt(0)).toEqual(FIRST);
});

test('an estimate that is nearly the same is not written again', () => {
  expect(etaAt(30 * SECOND, FIRST)).toEqual(FIRST);
});

test('another estimate has its own time', () => {
  expect(etaAt(2 * MINUTE, FIRST)).toEqual({
    at: later(4 * MINUTE),
    earliest: later(3 * MINUTE),
    latest: later(5 * MINUTE),
    asOf: later(2 * MINUTE),
  });
});

test('an estimate that differs by a whole minute is written again', () => {
  expect(etaAt(MINUTE - 1, FIRST)).toEqual(FIRST);
  expect(etaAt(MINUTE, FIRST)?.asOf).toBe(later(MINUTE));
});

test.each(['at', 'earliest', 'latest'] as const)(
  'an estimate is written again if only `%s` differs by more than a minute',
  (key) => {
    expect(etaAt(0, { ...FIRST, [key]: later(9 * MINUTE) })).toEqual(FIRST);
  },
);

test('an estimate without a time, which an earlier release wrote, stays until it changes', () => {
  const { asOf: _, ...untimed } = FIRST;
  expect(etaAt(30 * SECOND, untimed)).toEqual(untimed);
  expect(etaAt(2 * MINUTE, untimed)?.asOf).toBe(later(2 * MINUTE));
});
