/** Tests that the budgets in a sentence about a drain are found again. */
import { expect, test } from 'vitest';
import { blockedByBudget } from '../../drain/budgets.ts';
import { budgetsIn } from './blocking-budget.ts';

test('each budget that blocks a drain is found once, in the order of the sentence', () => {
  const web = blockedByBudget('default/web', 'default/web-1', 'it needs 1 healthy pods');
  const db = blockedByBudget('shop/db.v2', 'shop/db-0', 'it needs 2 healthy pods');
  expect(budgetsIn(`2 pods are left on node w1: ${web}; ${db}; ${web}`)).toEqual([
    'default/web',
    'shop/db.v2',
  ]);
});

test('a sentence about a drain without a budget names none', () => {
  expect(budgetsIn('1 pod is left on node w1 (default/web-1): it does not end')).toEqual([]);
});
