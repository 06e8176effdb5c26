/**
 * Tests that a node whose roll-back failed keeps its slot while other nodes wait, and counts against the failure
 * budget.
 */
import { expect, test } from 'vitest';
import { decide } from '../../../test/support/builders/decisions.ts';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import type { TargetFacts } from '../model/facts.ts';
import type { RecordedState } from '../model/rollout.ts';
import { describeUsedUpBudget } from './budget.ts';

const told = (rolledBack?: boolean): Partial<TargetFacts> => {
  const report = rolledBack === undefined ? {} : { rolledBack };
  return {
    observation: { kind: 'failed', message: 'no', attempt: later(0), since: later(0), report },
  };
};

test.each<[string, Record<string, Partial<TargetFacts>>, RecordedState[], RecordedState[], number]>(
  [
    [
      'its slot is not free while nothing says that its work has ended',
      { w1: told(false) },
      ['intended', 'pending'],
      ['intended', 'pending'],
      1,
    ],
    [
      'its slot is free if it was rolled back',
      { w1: told(true) },
      ['intended', 'pending'],
      ['failed', 'intended'],
      1,
    ],
    [
      'its slot is free if it was not touched',
      { w1: told() },
      ['intended', 'pending'],
      ['failed', 'intended'],
      1,
    ],
    [
      'its slot is free if it is not Ready',
      { w1: { ...told(false), ready: false } },
      ['intended', 'pending'],
      ['failed', 'intended'],
      1,
    ],
    ['nobody waits for the slot', { w1: told(false) }, ['intended', 'done'], ['failed', 'done'], 1],
    [
      'the budget is used up',
      { w1: told(false) },
      ['intended', 'pending'],
      ['failed', 'pending'],
      0,
    ],
    [
      'two are more than the budget',
      { w1: told(false), w2: told(false) },
      ['intended', 'intended', 'pending'],
      ['failed', 'failed', 'pending'],
      1,
    ],
  ],
)('%s', (_name, facts, before, after, maxFailures) => {
  const targets = before.map((state, index) => buildTarget(`w${index + 1}`, state));
  const snapshot = buildSnapshot(
    buildRollout([buildStage('worker', targets, { maxInFlight: 1 })]),
    facts,
  );
  const { record } = decide(snapshot, buildPolicy({ maxFailures }), T0);
  const [stage] = (record ?? snapshot.rollout).stages;
  expect(stage?.targets.map(({ state }) => state)).toEqual(after);
});

test('a failed controller ends the plan at once, whatever the budget', () => {
  const stage = buildStage('controller', [buildTarget('c1', 'intended'), 'c2']);
  const snapshot = buildSnapshot(buildRollout([stage]), { c1: told(false) });
  const { record } = decide(snapshot, buildPolicy({ maxFailures: 9 }), T0);
  expect(record?.phase).toBe('failed');
});

test.each<[string, 'controller' | 'worker', number, object | undefined]>([
  ['is not used up', 'worker', 2, undefined],
  [
    'is used up',
    'worker',
    1,
    {
      message: '2 nodes failed (n1, n2), more than failureBudget 1 of UpgradePolicy nightly allows',
      lifts:
        'the failed node is tried again (run refit retry NODE), or failureBudget is 2 or more while the plan runs',
    },
  ],
  [
    'does not count for controllers',
    'controller',
    9,
    {
      message:
        'a failed controller (n1, n2) stops the plan, even if failureBudget allows a failure',
      lifts: 'the failed node is tried again (run refit retry NODE)',
    },
  ],
])('a failure budget that %s is described with its failures and with what raises it', (...row) => {
  const [, role, maxFailures, expected] = row;
  const failed = ['n1', 'n2'].map((name) => buildTarget(name, 'failed'));
  const snapshot = buildSnapshot(buildRollout([buildStage(role, failed)]), {});
  const policy = buildPolicy({ maxFailures, name: 'nightly' });
  expect(describeUsedUpBudget(snapshot, policy)).toEqual(expected);
});

test('what lifts a used-up budget of a dialect whose nodes `refit retry` cannot try again', () => {
  const rollout = buildRollout([buildStage('controller', [buildTarget('n1', 'failed')])]);
  const retriedBy = 'run the program again';
  const snapshot = withParts(buildSnapshot(rollout, {}), { abilities: { retriedBy } });
  const found = describeUsedUpBudget(snapshot, buildPolicy());
  expect(found?.lifts).toBe('the failed node is tried again (run the program again)');
});
