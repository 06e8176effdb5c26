/**
 * Tests the conformance of custom objects: which fields are pruned, which fields get defaults, and how null is handled.
 */
import { get, merge, post, type Step } from './harness/case.ts';
import { WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const making = (spec: unknown, more: object = {}): Step[] => [
  post(WIDGETS, { ...widget('w', {}, {}, more), spec }),
];

const text = { type: 'string' };
const item = { type: 'object', properties: { name: text, size: { type: 'integer', default: 3 } } };

const spec = {
  type: 'object',
  properties: {
    text,
    defaulted: { type: 'string', default: 'standard' },
    nullable: { type: 'string', nullable: true },
    nullableDefaulted: { type: 'string', nullable: true, default: 'x' },
    nested: {
      type: 'object',
      properties: {
        inner: {
          type: 'object',
          properties: { value: { type: 'integer' }, mode: { type: 'string', default: 'auto' } },
        },
      },
    },
    withDefaults: {
      type: 'object',
      default: {},
      properties: { a: { type: 'integer', default: 1 }, b: text },
    },
    items: { type: 'array', items: item },
    map: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        properties: { name: text, on: { type: 'boolean', default: true } },
      },
    },
    scalars: { type: 'object', additionalProperties: text },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    half: {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { known: { type: 'object', properties: { a: { type: 'integer' } } } },
    },
    matrix: {
      type: 'array',
      items: { type: 'array', items: { type: 'object', properties: { name: text } } },
    },
  },
};

const testCase = conformance('crd-pruning', [widgetFixture(widgetDefinition(spec))]);

testCase('what the schema knows stays', making({ text: 'a', nested: { inner: { value: 1 } } }));
testCase(
  'unknown members go, at every depth',
  making({
    color: 'red',
    nested: { color: 'red', inner: { color: 'red', value: 1 } },
  }),
);
testCase(
  'unknown members of list items go',
  making({ items: [{ name: 'a', color: 'red' }, { color: 'red' }] }),
);
testCase('unknown members of map values go', making({ map: { any: { name: 'a', color: 'red' } } }));
testCase('a map of scalars takes all keys', making({ scalars: { a: 'b', 'c.d/e': 'f' } }));
testCase(
  'what is preserved stays as it is',
  making({ free: { deep: { deeper: [{ any: 'thing' }] } } }),
);
testCase(
  'within what is preserved, known members are pruned',
  making({ half: { known: { a: 1, b: 2 }, unknown: { b: 2 } } }),
);
testCase('unknown members of the object go', making({}, { extra: { a: 1 } }));
testCase('lists of lists are pruned', making({ matrix: [[{ name: 'a', color: 'red' }]] }));
testCase('a scalar where a map should be is not pruned but refused', making({ nested: 'text' }));
testCase('defaults are set', making({ nested: {} }));
testCase(
  'defaults do not replace what is given',
  making({ defaulted: 'given', nested: { inner: { mode: 'given' } } }),
);
testCase('defaults of members go into maps that are there', making({ nested: { inner: {} } }));
testCase(
  'defaults go into list items and map values',
  making({ items: [{ name: 'a' }, {}], map: { a: {} } }),
);
testCase('a default can be a map whose members have defaults', making({}));
testCase('null where null is allowed', making({ nullable: null, nullableDefaulted: null }));
testCase(
  'null where it is not: defaulted, or dropped',
  making({ defaulted: null, text: null, nested: null }),
);
testCase('null in list items and map values', making({ items: [null], scalars: { a: null } }));
testCase('no spec at all', making(undefined));
testCase('spec null', making(null));
testCase('a patch is pruned and defaulted too', [
  post(WIDGETS, widget('w', { text: 'a' })),
  merge(`${WIDGETS}/w`, { spec: { color: 'red', nested: { inner: { color: 'red' } } } }),
  merge(`${WIDGETS}/w`, { spec: { defaulted: null } }),
]);
testCase('strict validation names every unknown member', [
  post(`${WIDGETS}?fieldValidation=Strict`, {
    ...widget(
      'w',
      { color: 'red', items: [{ shape: 'round' }], map: { a: { size: 1 } } },
      { owner: 'me' },
    ),
    extra: 1,
  }),
  post(`${WIDGETS}?fieldValidation=Strict`, widget('w', { text: 'fine' })),
  merge(`${WIDGETS}/w?fieldValidation=Strict`, { spec: { color: 'red' } }, { anyMessage: true }),
]);
testCase('ignoring validation gives no warnings', [
  post(`${WIDGETS}?fieldValidation=Ignore`, widget('w', { color: 'red' })),
  get(`${WIDGETS}/w`),
]);
