/** Tests how many targets of a stage may be in progress, and how many more may start. */
import { expect, test } from 'vitest';
import { working } from '../../../test/support/builders/observations.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { RecordedState, Role } from '../model/rollout.ts';
import { DEFAULT_POLICY } from '../policy/rollout-policy.ts';
import { failedInFlightIn, freeSlots, freeWithin, limitOf } from './slots.ts';

test.each<[string, Role, number, RecordedState[], { limit: number; free: number }]>([
  ['workers, none in flight', 'worker', 5, ['pending', 'done'], { limit: 5, free: 5 }],
  [
    'workers, some in flight',
    'worker',
    5,
    ['intended', 'intended', 'pending'],
    { limit: 5, free: 3 },
  ],
  ['workers, all in flight', 'worker', 1, ['intended'], { limit: 1, free: 0 }],
  ['more in flight than the limit', 'worker', 1, ['intended', 'intended'], { limit: 1, free: 0 }],
  [
    'what has ended holds no slot',
    'worker',
    2,
    ['failed', 'missing', 'unsupported', 'done'],
    { limit: 2, free: 2 },
  ],
  [
    'controllers are upgraded one at a time',
    'controller',
    1,
    ['done', 'pending'],
    { limit: 1, free: 1 },
  ],
  ['controllers, one in flight', 'controller', 1, ['intended', 'pending'], { limit: 1, free: 0 }],
  [
    'controllers, whatever is asked for',
    'controller',
    3,
    ['pending', 'pending'],
    { limit: 1, free: 1 },
  ],
  ['a limit of none', 'controller', 0, ['pending'], { limit: 0, free: 0 }],
])('the free slots of a stage: %s', (_name, role, maxInFlight, states, wanted) => {
  const targets = states.map((state, index) => buildTarget(`n${index}`, state));
  const stage = buildStage(role, targets, { maxInFlight });
  expect({ limit: limitOf(stage), free: freeSlots(stage) }).toEqual(wanted);
});

test('a failed node at work takes one slot, also when failures hold their slots', () => {
  const stage = buildStage('worker', [buildTarget('w1', 'failed'), buildTarget('w2', 'failed')], {
    maxInFlight: 2,
  });
  const extra = (failedHoldSlots: boolean): number => {
    const snapshot = buildSnapshot(buildRollout([{ ...stage, failedHoldSlots }]), {
      w1: { observation: working('UpdatingConfig') },
    });
    return failedInFlightIn(snapshot, T0).length;
  };
  expect([extra(false), extra(true)]).toEqual([1, 0]);
});

test('failed nodes that hold slots release them only while maxFailures is not exceeded', () => {
  const targets = [
    buildTarget('w1', 'failed'),
    buildTarget('w2', 'failed'),
    buildTarget('w3', 'pending'),
  ];
  const stage = { ...buildStage('worker', targets, { maxInFlight: 1 }), failedHoldSlots: true };
  const free = (maxFailures: number): number =>
    freeWithin(stage, { ...DEFAULT_POLICY, maxFailures });
  expect([free(0), free(1), free(2)]).toEqual([0, 0, 1]);
});
