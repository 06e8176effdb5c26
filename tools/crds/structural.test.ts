/**
 * Tests that zod schemas become schemas that Kubernetes accepts, and that the error names the field that Kubernetes
 * would refuse.
 */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { checkStructural } from './check-structural.ts';
import { structural } from './definition.ts';

interface Recursive {
  inner?: Recursive;
}
const recursive: z.ZodType<Recursive> = z.lazy(() =>
  z.object({ inner: recursive.exactOptional() }),
);

const only = (field: z.ZodType) => {
  const schema = structural(z.object({ field }));
  checkStructural(schema);
  return schema;
};

test.each<[string, z.ZodType, Record<string, unknown>]>([
  ['an integer has no bounds of JavaScript', z.int(), { type: 'integer' }],
  ['a bound of our own stays', z.int().min(0).max(9), { type: 'integer', minimum: 0, maximum: 9 }],
  [
    'an open bound is the boolean form',
    z.number().gt(0),
    { type: 'number', minimum: 0, exclusiveMinimum: true },
  ],
  ['a constant is an enumeration of one', z.literal('on'), { type: 'string', enum: ['on'] }],
  ['a closed object needs no keyword', z.strictObject({}), { type: 'object', properties: {} }],
  [
    'a map has the schema of its values',
    z.record(z.string(), z.int()),
    { type: 'object', additionalProperties: { type: 'integer' } },
  ],
  ['null is said beside the type', z.string().nullable(), { type: 'string', nullable: true }],
  [
    'a format and a description come from metadata',
    z.string().meta({ format: 'date-time', description: 'When.' }),
    { type: 'string', format: 'date-time', description: 'When.' },
  ],
  [
    'int-or-string is an extension without a type',
    z.union([z.int(), z.string()]).meta({ 'x-kubernetes-int-or-string': true }),
    { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
  ],
  [
    'anything may be kept as it is',
    z.unknown().meta({ 'x-kubernetes-preserve-unknown-fields': true }),
    { 'x-kubernetes-preserve-unknown-fields': true },
  ],
  [
    'rules and list types stay',
    z.array(z.string()).meta({
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-validations': [{ rule: 'self.size() > 0' }],
    }),
    {
      type: 'array',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-validations': [{ rule: 'self.size() > 0' }],
    },
  ],
])('%s', (_, schema, expected) => {
  expect(only(schema)).toEqual({
    type: 'object',
    properties: { field: expected },
    required: ['field'],
  });
});

test('a field with a default is optional, and shows the default', () => {
  const schema = z.object({ limits: z.object({ n: z.int().default(1) }).default({ n: 1 }) });
  expect(structural(schema)).toEqual({
    type: 'object',
    properties: {
      limits: {
        type: 'object',
        default: { n: 1 },
        properties: { n: { type: 'integer', default: 1 } },
      },
    },
  });
});

test.each<[string, z.ZodType, RegExp]>([
  ['recursion', recursive, /cycle/i],
  ['a union', z.union([z.string(), z.object({ a: z.string() })]), /field is a union/],
  [
    'a discriminated union',
    z.discriminatedUnion('t', [z.object({ t: z.literal('a') })]),
    /field uses oneOf/,
  ],
  ['an intersection', z.intersection(z.string(), z.int()), /field uses allOf/],
  ['a value without a type', z.unknown(), /field has no type/],
  ['an open object', z.looseObject({ a: z.string() }), /field mixes named members with a map/],
  ['look-ahead', z.string().regex(/^a(?!b)/), /field has the pattern/],
  ['look-behind', z.string().regex(/(?<=a)b/), /field has the pattern/],
  ['a back-reference', z.string().regex(/(a)\1/), /field has the pattern/],
  ['a back-reference by name', z.string().regex(/(?<a>b)\k<a>/), /field has the pattern/],
  [
    'a fault deep inside',
    z.array(z.record(z.string(), z.unknown())),
    /field\.\[\]\.\* has no type/,
  ],
])('%s is refused', (_, schema, reason) => {
  expect(() => only(schema)).toThrow(reason);
});

test.each([/^a{1,3}(?:b|c)$/, /\(\?=/, /^\d+\.\d+$/])('the pattern %s is taken', (pattern) => {
  expect(only(z.string().regex(pattern))).toMatchObject({
    properties: { field: { pattern: pattern.source } },
  });
});
