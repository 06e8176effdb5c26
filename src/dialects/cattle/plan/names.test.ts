/** Proves which texts of a Plan become labels and selectors, and which are refused. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { resolveLatest } from './latest.ts';
import { expandedLabels } from './names.ts';

test('labels hold the version and the hash where their variables stand; what is no variable stays', () => {
  const labels = { a: '$(LATEST_VERSION)-$(LATEST_HASH)', b: '$$(LATEST_HASH) $(OTHER)' };
  expect(expandedLabels(labels, 'v1', 'h')).toEqual({ a: 'v1-h', b: '$(LATEST_HASH) $(OTHER)' });
});

const ALLOWED = 'use at most 63 letters, digits, "-", "_" and "."';
const long = 'p'.repeat(64);

test.each<[string, string, Partial<CattleSpec>, string]>([
  [
    'a name that no label can have',
    long,
    {},
    `metadata.name is invalid, "plan.upgrade.cattle.io/${long}" is not a label name; ${ALLOWED}`,
  ],
  [
    'a comma, which would be a second requirement',
    'p',
    { nodeSelector: { matchLabels: { app: 'a,b' } } },
    `spec.nodeSelector is invalid, "a,b" is not a label value; ${ALLOWED}`,
  ],
  [
    'a comma in a list',
    'p',
    {
      drain: {
        podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['a,b'] }] },
      },
    },
    `spec.drain.podSelector is invalid, "a,b" is not a label value; ${ALLOWED}`,
  ],
  [
    'a selector that takes long to read',
    'p',
    {
      nodeSelector: {
        matchExpressions: [{ key: 'app', operator: 'In', values: Array(40_000).fill('a') }],
      },
    },
    'spec.nodeSelector is invalid, 160063 is too many characters; use at most 65536',
  ],
  [
    'a label that no Node can have',
    'p',
    { postCompleteLabels: { done: 'on Monday' } },
    `spec.postCompleteLabels is invalid, "on Monday" is not a label value; ${ALLOWED}`,
  ],
  [
    'a label that is too long with the hash',
    'p',
    { postCompleteLabels: { done: 'of-hash-$(LATEST_HASH)' } },
    `spec.postCompleteLabels is invalid, "of-hash-${'0'.repeat(56)}" is not a label value; ${ALLOWED}`,
  ],
  ['a good label', 'p', { postCompleteLabels: { done: 'at.$(LATEST_VERSION)' } }, ''],
  [
    'no version',
    'p',
    { version: ' ' },
    `the version is invalid, " " is not a label value; ${ALLOWED}`,
  ],
])('%s', (_name, name, spec, fault) => {
  const { problems } = resolveLatest(buildCattlePlan(name, spec), undefined);
  expect(problems.map(({ message }) => message).join()).toBe(fault);
});
