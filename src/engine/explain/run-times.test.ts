/** Tests when a run of a plan started and ended, according to the history in its NodeRollout. */
import { expect, test } from 'vitest';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { endOfRun, endOpenRuns, startOfRun } from './run-times.ts';

const OWN = { id: 'run-1', planUid: 'plan-uid' };

function run(more: Partial<NodeRolloutRun>): NodeRolloutRun {
  return { ...OWN, started: later(0), ended: later(MINUTE), ...more } as NodeRolloutRun;
}

const NOW = T0 + 10 * MINUTE;
const start = (history: readonly NodeRolloutRun[], first = later(2 * MINUTE)) =>
  startOfRun(history, OWN, { first: () => first, now: NOW });

test('the recorded start counts, but not that of another run or of another plan', () => {
  expect(start([run({ id: 'run-0' }), run({})], later(-MINUTE))).toBe(later(0));
  expect(start([run({ planUid: 'other' })])).toBe(later(2 * MINUTE));
  expect(start([run({ id: 'run-0' })])).toBe(later(2 * MINUTE));
});

test('a run whose targets have moved only in an earlier run of the plan starts now', () => {
  const earlier = run({ id: 'run-0', ended: later(2 * MINUTE) });
  expect(start([earlier])).toBe(later(10 * MINUTE));
  expect(start([run({ id: 'run-2' }), earlier])).toBe(later(10 * MINUTE));
  expect(start([{ ...earlier, planUid: 'other' }])).toBe(later(2 * MINUTE));
  const { ended: _, ...open } = earlier;
  expect(start([open])).toBe(later(2 * MINUTE));
});

test('only the end of the run itself counts', () => {
  const others = [
    run({ id: 'run-0', ended: later(1) }),
    run({ planUid: 'other', ended: later(2) }),
  ];
  expect(endOfRun([...others, run({ ended: later(3) })], OWN)).toBe(later(3));
  expect(endOfRun(others, OWN)).toBeUndefined();
});

test('runs without an end end now, because another run replaced them or their plan was deleted', () => {
  const ended = run({});
  const { ended: _, ...open } = run({ id: 'run-2', phase: 'running' });
  const ends = { ...open, ended: later(10 * MINUTE) };
  expect(endOpenRuns([ended, open], NOW, 'plan-uid')).toEqual([
    ended,
    {
      ...ends,
      phase: 'edited',
      message: 'what the plan asks for changed while it ran, so another run replaced this one',
    },
  ]);
  expect(endOpenRuns([open], NOW)).toEqual([{ ...ends, phase: 'deleted' }]);
  expect(endOpenRuns([open], NOW, 'other')).toEqual([{ ...ends, phase: 'deleted' }]);
});
