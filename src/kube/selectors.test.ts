/**
 * Tests that selectors mean the same as on an API server, and that Refit refuses the selectors that an API server
 * refuses.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { growthOf } from '../../test/support/growth.ts';
import type { KubeObject, LabelSelector, Node } from './resources.ts';
import {
  matchesLabels,
  nodeFields,
  objectFields,
  parseFieldSelector,
  parseLabelSelector,
  SelectorError,
  selectorFault,
} from './selectors.ts';

const labelled = (labels?: Record<string, string>): KubeObject => ({
  metadata: { name: 'n', ...(labels ? { labels } : {}) },
});

test.each<[operator: string, values: string[], fault: string | undefined]>([
  ['In', ['blue'], undefined],
  ['NotIn', [], 'the operator NotIn for the label pool needs at least one value'],
  ['Exists', [], undefined],
  ['Exists', ['true'], 'the operator Exists for the label pool allows no values'],
  ['DoesNotExist', ['true'], 'the operator DoesNotExist for the label pool allows no values'],
])('as an object, with %s and %j: %s', (operator, values, fault) => {
  expect(selectorFault({ matchExpressions: [{ key: 'pool', operator, values }] })).toBe(fault);
});

describe('a label selector', () => {
  const BLUE = { pool: 'blue' };
  test.each<[selector: string, labels: Record<string, string>, matches: boolean]>([
    ['', {}, true],
    ['  ', BLUE, true],
    ['pool=blue', BLUE, true],
    ['pool==blue', BLUE, true],
    ['pool = blue', BLUE, true],
    ['pool=blue', { pool: 'green' }, false],
    ['pool=blue', {}, false],
    ['pool=', { pool: '' }, true],
    ['pool=', {}, false],
    ['pool!=blue', { pool: 'green' }, true],
    ['pool!=blue', BLUE, false],
    ['pool!=', { pool: '' }, false],
    ['pool in (blue,green)', BLUE, true],
    ['pool in (blue, green)', { pool: 'green' }, true],
    ['pool in(blue)', BLUE, true],
    ['pool in (red)', BLUE, false],
    ['pool in (blue)', {}, false],
    ['pool in (,blue)', { pool: '' }, true],
    ['pool in (blue,)', { pool: '' }, true],
    ['pool notin (red,green)', BLUE, true],
    ['pool notin (blue)', BLUE, false],
    ['pool', BLUE, true],
    ['pool', { pool: '' }, true],
    ['pool', {}, false],
    ['!pool', {}, true],
    ['! pool', BLUE, false],
    ['pool=blue,!canary', BLUE, true],
    ['pool=blue,!canary', { pool: 'blue', canary: '' }, false],
    ['pool in (blue,red),zone in (a,b), tier', { pool: 'red', zone: 'b', tier: '' }, true],
    ['pool in (blue,red),zone in (a,b), tier', { pool: 'red', zone: 'c', tier: '' }, false],
    ['kubernetes.io/os=linux', { 'kubernetes.io/os': 'linux' }, true],
    ['node-role.kubernetes.io/worker', { 'node-role.kubernetes.io/worker': '' }, true],
    ['in in (in)', { in: 'in' }, true],
    ['notin', { notin: '1' }, true],
    ['Pool_1.x=V-1_2.3', { 'Pool_1.x': 'V-1_2.3' }, true],
    [`pool=${'v'.repeat(63)}`, { pool: 'v'.repeat(63) }, true],
    ['constructor', { pool: 'blue' }, false],
    ['!toString', { pool: 'blue' }, true],
  ])('%j on %j: %s', (selector, labels, matches) => {
    expect(parseLabelSelector(selector)(labelled(labels))).toBe(matches);
  });

  test.each(['pool!=blue', 'pool notin (blue)', '!pool'])(
    '%s matches what has no such label, and what has no labels at all',
    (selector) => {
      expect(parseLabelSelector(selector)(labelled({ zone: 'a' }))).toBe(true);
      expect(parseLabelSelector(selector)(labelled())).toBe(true);
    },
  );

  test.each([
    'pool=blue green',
    '=blue',
    'pool=blue,',
    ',pool=blue',
    'pool,,zone',
    'pool===blue',
    'pool=blue=green',
    'pool!blue',
    'pool!',
    '!!pool',
    '!pool=blue',
    'pool blue',
    'pool in',
    'pool in blue',
    'pool in ()',
    'pool notin ( )',
    'pool in (blue',
    'pool in blue)',
    'pool in (blue))',
    'pool in ((blue))',
    'pool in (blue green)',
    'pool in (blue),zone in',
    'pool isin (blue)',
    'pool>blue',
    '-pool=blue',
    'pool-=blue',
    'pool=-blue',
    'pool=blue.',
    'pool=$(BLUE)',
    'a/b/c=d',
    '/pool=blue',
    'Example.com/pool=blue',
    'pool=blüe',
    `${'k'.repeat(64)}=v`,
    `pool=${'v'.repeat(64)}`,
    `pool in (${'v'.repeat(64)})`,
    `${'p'.repeat(254)}/pool=v`,
    'pool=blue;zone=a',
    '{pool: blue}',
  ])('%j is refused', (selector) => {
    expect(() => parseLabelSelector(selector)).toThrow(SelectorError);
  });

  test.each([
    ['pool blue', '"pool blue" is not a label requirement'],
    ['zone=a,pool in (blue green)', '"blue green" is not a label value'],
    ['pool in ()', '"pool in ()" has no value'],
  ])('%j says what is wrong', (selector, message) => {
    expect(() => parseLabelSelector(selector)).toThrow(message);
  });
});

describe('whatever is written by the grammar means what it says', () => {
  const key = fc.constantFrom('pool', 'zone', 'kubernetes.io/os', 'a-b_c.d', 'in');
  const value = fc.constantFrom('blue', 'green', '', 'v1.2', 'notin');
  const space = fc.constantFrom('', ' ', '  ');
  type Has = (labels: Readonly<Record<string, string>>) => boolean;
  interface Requirement {
    readonly text: string;
    readonly has: Has;
  }
  const written = (text: string, has: Has): Requirement => ({ text, has });
  const requirement = fc
    .record({ key, value, values: fc.array(value, { minLength: 2, maxLength: 3 }), space })
    .chain(({ key: k, value: v, values, space: s }) =>
      fc.constantFrom<Requirement[]>(
        written(`${k}${s}=${s}${v}`, (labels) => labels[k] === v),
        written(`${k}${s}==${s}${v}`, (labels) => labels[k] === v),
        written(`${k}${s}!=${s}${v}`, (labels) => labels[k] !== v),
        written(`${k} in ${s}(${values.join(`${s},${s}`)})`, (labels) =>
          values.some((each) => labels[k] === each),
        ),
        written(
          `${k} notin${s}(${values.join(',')})`,
          (labels) => !values.some((each) => labels[k] === each),
        ),
        written(`${s}${k}${s}`, (labels) => k in labels),
        written(`!${s}${k}`, (labels) => !(k in labels)),
      ),
    );

  test('one requirement or several', () => {
    const selectors = fc.array(requirement, { maxLength: 4 });
    fc.assert(
      fc.property(
        selectors,
        fc.dictionary(key, value, { noNullPrototype: true }),
        (parts, labels) => {
          const matches = parseLabelSelector(parts.map(({ text }) => text).join(','));
          expect(matches(labelled(labels))).toBe(parts.every(({ has }) => has(labels)));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('and whatever text there is, it is parsed or refused, quickly, and never anything else', () => {
    const texts = fc.oneof(
      fc.string({ maxLength: 200 }),
      fc.string({
        unit: fc.constantFrom('a', 'b', '-', '.', ',', '(', ')', '=', '!', ' ', 'in'),
        maxLength: 200,
      }),
    );
    fc.assert(
      fc.property(texts, (text) => {
        try {
          parseLabelSelector(text)(labelled({ a: 'b' }));
        } catch (error) {
          expect(error).toBeInstanceOf(SelectorError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('a field selector', () => {
  const cordoned: Node = { ...buildNode('w1'), spec: { unschedulable: true } };
  test.each<[selector: string, object: Node, matches: boolean]>([
    ['', buildNode('w1'), true],
    ['metadata.name=w1', buildNode('w1'), true],
    ['metadata.name==w1', buildNode('w1'), true],
    ['metadata.name=w1', buildNode('w10'), false],
    ['metadata.name!=w1', buildNode('w2'), true],
    ['metadata.name!=w1', buildNode('w1'), false],
    ['metadata.name!=w1,metadata.name!=w2', buildNode('w3'), true],
    ['metadata.name!=w1, metadata.name!=w2', buildNode('w2'), false],
    ['spec.unschedulable=true', cordoned, true],
    ['spec.unschedulable=false', buildNode('w1'), true],
    ['spec.unschedulable=false', cordoned, false],
    ['spec.unschedulable!=true', buildNode('w1'), true],
  ])('%j on a node', (selector, object, matches) => {
    expect(parseFieldSelector(selector, nodeFields)(object)).toBe(matches);
  });

  test.each([
    'metadata.nmae=w1',
    'status.phase=Running',
    'metadata.labels.pool=blue',
    'spec.taints!=',
    'metadata.name',
    'metadata.name in (w1)',
    'metadata.name>w1',
    'metadata.name= w1',
    'metadata.name =w1',
    'metadata.name=w1 w2',
    'metadata.name=w1,',
    '=w1',
    'metadata.name=w1=w2',
    'metadata.name=w1;metadata.name=w2',
    'constructor=x',
  ])('%j is refused: an API server refuses it too, or it could never match', (selector) => {
    expect(() => parseFieldSelector(selector, nodeFields)).toThrow(SelectorError);
  });

  test('knows the fields of each kind', () => {
    expect(() => parseFieldSelector('spec.unschedulable=true', objectFields)).toThrow(
      '"spec.unschedulable" is not a selectable field; use metadata.name',
    );
  });
});

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

test('a selector of 300,000 characters is parsed in one pass, whatever it consists of', () => {
  for (const part of [',', 'a,', '(', ')', 'a in (b),', '(,', 'a ', '!', 'a in (']) {
    const parseBoth = (size: number): void => {
      const text = part.repeat(size / part.length);
      for (const parse of [
        () => parseLabelSelector(text),
        () => parseFieldSelector(text, objectFields),
      ])
        try {
          parse();
        } catch (error) {
          expect(error).toBeInstanceOf(SelectorError);
        }
    };
    expect(growthOf(parseBoth, 18_750, 16, 64), JSON.stringify(part)).toBeLessThan(64);
  }
});
