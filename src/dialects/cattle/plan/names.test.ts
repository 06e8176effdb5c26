/** Proves which texts of a Plan become labels and selectors, which are refused, and which nodes a Plan selects. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { resolveLatest } from './latest.ts';
import { expandedLabels, hashOn, selects, shortenedName } from './names.ts';

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

test.each([
  ['$$', '$'],
  ['a)$$b', 'a)$b'],
  ['$(LATEST_HASH', '$(LATEST_HASH'],
  ['$(toString)', '$(toString)'],
])('a label of "%s" becomes "%s"', (text, wanted) => {
  expect(expandedLabels({ a: text }, 'v1', 'h')).toEqual({ a: wanted });
});

test('a Plan without labels for done nodes sets none', () => {
  expect(expandedLabels(undefined, 'v1', 'h')).toEqual({});
});

test('a name of 63 characters stays, and a longer one is cut to that', () => {
  expect(shortenedName('a'.repeat(63))).toBe('a'.repeat(63));
  expect(shortenedName('a'.repeat(64))).toMatch(/^a{57}-[0-9a-f]{5}$/);
});

const HOST = { 'kubernetes.io/hostname': 'w1' };
const OWN_HASH = 'plan.upgrade.cattle.io/p';
const matching = { nodeSelector: { matchLabels: { role: 'worker' } } };

test.each<[string, Partial<CattleSpec>, Record<string, string>, boolean]>([
  ['an empty selector selects every node', {}, HOST, true],
  ['a node without a hostname, on which no Job can be placed', {}, {}, false],
  ['a node that its label excludes', {}, { ...HOST, [OWN_HASH]: 'disabled' }, false],
  ['a node that was upgraded before', {}, { ...HOST, [OWN_HASH]: 'abc' }, true],
  ['a node that matches', matching, { ...HOST, role: 'worker' }, true],
  ['a node that does not', matching, { ...HOST, role: 'server' }, false],
])('which nodes a Plan selects: %s', (_name, spec, labels, wanted) => {
  expect(selects(buildCattlePlan('p', spec), buildNode('w1', { labels }))).toBe(wanted);
});

test('a Plan without a spec selects nothing', () => {
  const { spec: _, ...plan } = buildCattlePlan('p');
  expect(selects(plan, buildNode('w1', { labels: HOST }))).toBe(false);
  expect(selects(buildCattlePlan('p'), { metadata: { name: 'w1' } })).toBe(false);
});

test('the hash of a node is that of the Plan, not of another one', () => {
  const labels = { [OWN_HASH]: 'abc', 'plan.upgrade.cattle.io/q': 'def' };
  expect(hashOn(buildNode('w1', { labels }), buildCattlePlan('p'))).toBe('abc');
  expect(hashOn({ metadata: { name: 'w1' } }, buildCattlePlan('p'))).toBeUndefined();
});
