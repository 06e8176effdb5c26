/** Conformance of what is pruned from custom objects, what is defaulted in them, and what becomes of null. */
import { type Case, get, merge, post } from './harness/case.ts';
import { WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

const making = (name: string, spec: unknown, more: object = {}): Case => ({
  name,
  steps: [post(WIDGETS, { ...widget('w', {}, {}, more), spec })],
});

const cases: readonly Case[] = [
  making('what the schema knows stays', { text: 'a', nested: { inner: { value: 1 } } }),
  making('unknown members go, at every depth', {
    color: 'red',
    nested: { color: 'red', inner: { color: 'red', value: 1 } },
  }),
  making('unknown members of list items go', { items: [{ name: 'a', color: 'red' }, { color: 'red' }] }),
  making('unknown members of map values go', { map: { any: { name: 'a', color: 'red' } } }),
  making('a map of scalars takes all keys', { scalars: { a: 'b', 'c.d/e': 'f' } }),
  making('what is preserved stays as it is', { free: { deep: { deeper: [{ any: 'thing' }] } } }),
  making('within what is preserved, known members are pruned', { half: { known: { a: 1, b: 2 }, unknown: { b: 2 } } }),
  making('unknown members of the object go', {}, { extra: { a: 1 } }),
  making('lists of lists are pruned', { matrix: [[{ name: 'a', color: 'red' }]] }),
  making('a scalar where a map should be is not pruned but refused', { nested: 'text' }),
  making('defaults are set', { nested: {} }),
  making('defaults do not replace what is given', { defaulted: 'given', nested: { inner: { mode: 'given' } } }),
  making('defaults of members go into maps that are there', { nested: { inner: {} } }),
  making('defaults go into list items and map values', { items: [{ name: 'a' }, {}], map: { a: {} } }),
  making('a default can be a map whose members have defaults', {}),
  making('null where null is allowed', { nullable: null, nullableDefaulted: null }),
  making('null where it is not: defaulted, or dropped', { defaulted: null, text: null, nested: null }),
  making('null in list items and map values', { items: [null], scalars: { a: null } }),
  making('no spec at all', undefined),
  making('spec null', null),
  {
    name: 'a patch is pruned and defaulted too',
    steps: [
      post(WIDGETS, widget('w', { text: 'a' })),
      merge(`${WIDGETS}/w`, { spec: { color: 'red', nested: { inner: { color: 'red' } } } }),
      merge(`${WIDGETS}/w`, { spec: { defaulted: null } }),
    ],
  },
  {
    name: 'strict validation names every unknown member',
    steps: [
      post(`${WIDGETS}?fieldValidation=Strict`, {
        ...widget('w', { color: 'red', items: [{ shape: 'round' }], map: { a: { size: 1 } } }, { owner: 'me' }),
        extra: 1,
      }),
      post(`${WIDGETS}?fieldValidation=Strict`, widget('w', { text: 'fine' })),
      merge(`${WIDGETS}/w?fieldValidation=Strict`, { spec: { color: 'red' } }, { anyMessage: true }),
    ],
  },
  {
    name: 'ignoring validation gives no warnings',
    steps: [post(`${WIDGETS}?fieldValidation=Ignore`, widget('w', { color: 'red' })), get(`${WIDGETS}/w`)],
  },
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
    withDefaults: { type: 'object', default: {}, properties: { a: { type: 'integer', default: 1 }, b: text } },
    items: { type: 'array', items: item },
    map: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { name: text, on: { type: 'boolean', default: true } } },
    },
    scalars: { type: 'object', additionalProperties: text },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    half: {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { known: { type: 'object', properties: { a: { type: 'integer' } } } },
    },
    matrix: { type: 'array', items: { type: 'array', items: { type: 'object', properties: { name: text } } } },
  },
};

conformance('crd-pruning', cases, [widgetFixture(widgetDefinition(spec))]);
