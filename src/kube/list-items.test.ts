/** Tests which objects are read from a document that contains a List or a single object. */
import { expect, test } from 'vitest';
import { itemsOf } from './list-items.ts';

const PLAN = { apiVersion: 'a/v1', kind: 'Plan' };

function listWith(items: unknown): object {
  return { apiVersion: 'v1', kind: 'List', items };
}

test.each<[string, unknown, readonly (readonly [unknown, string | undefined])[]]>([
  ['an object', PLAN, [[PLAN, undefined]]],
  [
    'a List',
    listWith([PLAN, 3]),
    [
      [PLAN, 'items[0]'],
      [3, 'items[1]'],
    ],
  ],
  ['an empty List', listWith([]), []],
  ['a List with null', listWith(null), []],
  ['a List without items', { apiVersion: 'v1', kind: 'List' }, []],
  ['a typed list with null', { apiVersion: 'a/v1', kind: 'PlanList', items: null }, []],
  [
    'an object of a kind that ends with List',
    { apiVersion: 'a/v1', kind: 'AllowList' },
    [[{ apiVersion: 'a/v1', kind: 'AllowList' }, undefined]],
  ],
  [
    'a typed list, whose items get its kind',
    { apiVersion: 'a/v1', kind: 'PlanList', items: [{ spec: 1 }] },
    [[{ ...PLAN, spec: 1 }, 'items[0]']],
  ],
  [
    'a List within a List',
    listWith([listWith([PLAN]), { apiVersion: 'a/v1', kind: 'PlanList', items: [{}, PLAN] }]),
    [
      [PLAN, 'items[0].items[0]'],
      [PLAN, 'items[1].items[0]'],
      [PLAN, 'items[1].items[1]'],
    ],
  ],
])('%s', (_, value, wanted) => {
  expect(itemsOf(value)).toEqual(wanted.map(([item, path]) => ({ value: item, path })));
});

test.each<[unknown, string, string]>([
  [listWith({ a: PLAN }), 'items', 'is an object, expected a list'],
  [listWith('none'), 'items', 'is the text "none", expected a list'],
  [listWith([PLAN, listWith(7)]), 'items[1].items', 'is the number 7, expected a list'],
  [{ kind: 'PlanList', items: {} }, 'items', 'is an object, expected a list'],
])('%j: what is wrong', (value, path, fault) => {
  expect(itemsOf(value).at(-1)).toMatchObject({ path, fault });
});
