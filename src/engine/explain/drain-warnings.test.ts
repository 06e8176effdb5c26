/** Tests what people are told about drains that may not end because of PodDisruptionBudgets. */
import { describe, expect, test } from 'vitest';
import { CLEAR, OBSTACLE } from '../../../test/support/builders/gate-inputs.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { MINUTE } from '../../../test/support/clock/times.ts';
import { answered } from '../model/asked.ts';
import type { RolloutPhase } from '../model/rollout.ts';
import type { DrainPolicy } from '../policy/rollout-policy.ts';
import { budgetWarning, drainWarnings } from './drain-warnings.ts';

function policyOf(drain: Partial<DrainPolicy>, drainMs = 5 * MINUTE) {
  const base = buildPolicy();
  return buildPolicy({
    drain: { ...base.drain, ...drain },
    stepDeadlines: { ...base.stepDeadlines, drain: drainMs },
  });
}

const WEB =
  'the drain of w1 may not end: PodDisruptionBudget default/web blocks default/web-1: it wants all of them';
const ASKS = 'Refit cordons the node, and asks for the evictions';
const FIVE = `${ASKS} for at most 5 min (\`deadlines.drain\`), because an operator may change the budget. After that,`;
const ENDLESS = `${ASKS} until the budget allows them. This drain has no deadline, so the node stays cordoned until then, or until \`refit abort\``;

describe('what happens to a drain that a budget blocks', () => {
  test.each<[string, Partial<DrainPolicy>, number | undefined, string]>([
    [
      'the plan stops',
      { onDeadline: 'stop' },
      undefined,
      `${FIVE} Refit uncordons the node, and the plan stops`,
    ],
    [
      'the node fails',
      { onDeadline: 'skip' },
      undefined,
      `${FIVE} Refit uncordons the node, and the node has failed`,
    ],
    [
      'the node is left out',
      { onDeadline: 'skipNode' },
      undefined,
      `${FIVE} Refit uncordons the node, and leaves it out`,
    ],
    [
      'the work goes on',
      { onDeadline: 'proceed' },
      undefined,
      `${FIVE} the work on the node goes on with the pods that are left`,
    ],
    ['the drain waits', { onDeadline: 'wait' }, undefined, ENDLESS],
    ['the drain has no deadline', { onDeadline: 'stop' }, Number.POSITIVE_INFINITY, ENDLESS],
    [
      'the Job drains the node',
      { byWork: true },
      undefined,
      'The Job cordons the node, and asks for the evictions for as long as `spec.drain.timeout` of the Plan says',
    ],
  ])('%s', (_title, drain, drainMs, sentence) => {
    const found = budgetWarning(
      { name: 'w1' },
      { obstacles: [OBSTACLE] },
      policyOf(drain, drainMs),
    );
    expect(found).toEqual([`${WEB}. ${sentence}`]);
  });

  test('several budgets are in one warning', () => {
    const [found] = budgetWarning(
      { name: 'w1' },
      { obstacles: [OBSTACLE, { ...OBSTACLE, budget: 'default/db', pods: ['default/db-1'] }] },
      policyOf({}),
    );
    expect(found).toContain(
      `${WEB}; PodDisruptionBudget default/db blocks default/db-1: it wants all of them. ${FIVE}`,
    );
  });

  test('there is no warning without a budget, or if the policy waits for budgets', () => {
    expect(budgetWarning({ name: 'w1' }, CLEAR, policyOf({}))).toEqual([]);
    const waits = policyOf({ waitsForBudgets: true });
    expect(budgetWarning({ name: 'w1' }, { obstacles: [OBSTACLE] }, waits)).toEqual([]);
  });
});

test('only the pending nodes of an open plan are named, as far as their drains were previewed', () => {
  const blocked = { drainPreview: answered({ ...CLEAR, obstacles: [OBSTACLE] }) };
  const targets = [
    buildTarget('w1'),
    buildTarget('w2', 'intended'),
    buildTarget('w3'),
    buildTarget('w4', 'done'),
  ];
  const warnings = (phase: RolloutPhase) => {
    const rollout = buildRollout([buildStage('worker', targets)], { phase });
    const facts = { w1: blocked, w2: blocked, w4: blocked };
    return drainWarnings(buildSnapshot(rollout, facts), policyOf({}));
  };
  expect(warnings('running')).toEqual([
    `${WEB}. ${FIVE} Refit uncordons the node, and the plan stops`,
  ]);
  expect(warnings('new')).toHaveLength(1);
  expect(warnings('failed')).toEqual([]);
});
