/** Shows what a label selector in the form of an object selects. */
import { expect, test } from 'vitest';
import { matchesLabels } from './label-selector.ts';
import type { LabelSelector } from './types.ts';

const LABELS = { app: 'web', tier: 'front' };
const one = (operator: string, key: string, ...values: string[]): LabelSelector => ({
  matchExpressions: [{ key, operator, ...(values.length > 0 ? { values } : {}) }],
});

test.each<[string, LabelSelector | undefined, boolean]>([
  ['none', undefined, false],
  ['an empty one', {}, true],
  ['a label', { matchLabels: { app: 'web' } }, true],
  ['another value', { matchLabels: { app: 'db' } }, false],
  ['a label that is absent', { matchLabels: { zone: 'a' } }, false],
  ['all of several labels', { matchLabels: { app: 'web', tier: 'back' } }, false],
  ['In', one('In', 'app', 'db', 'web'), true],
  ['In, other values', one('In', 'app', 'db'), false],
  ['In, absent', one('In', 'zone', 'a'), false],
  ['NotIn', one('NotIn', 'app', 'db'), true],
  ['NotIn, its value', one('NotIn', 'app', 'web'), false],
  ['NotIn, absent', one('NotIn', 'zone', 'a'), true],
  ['Exists', one('Exists', 'app'), true],
  ['Exists, absent', one('Exists', 'zone'), false],
  ['DoesNotExist', one('DoesNotExist', 'zone'), true],
  ['DoesNotExist, present', one('DoesNotExist', 'app'), false],
  ['an operator nobody knows', one('Gt', 'app', '1'), false],
  ['labels and expressions', { matchLabels: { app: 'web' }, ...one('Exists', 'zone') }, false],
])('%s', (_name, selector, expected) => {
  expect(matchesLabels(selector, LABELS)).toBe(expected);
});
