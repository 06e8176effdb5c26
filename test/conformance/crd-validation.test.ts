/** Tests the conformance of validation by structural schemas: each rule with valid and invalid values. */
import { whyNotSince } from '../testenv/since.ts';
import { merge, post, type Step } from './harness/case.ts';
import { WIDGETS, widget, widgetDefinition, widgetFixture } from './harness/objects.ts';
import { conformance } from './harness/suite.ts';

/** Each value is `spec.<member>` of a new object. */
const rule = (member: string, ...values: unknown[]): Step[] =>
  values.map((value, index) => post(WIDGETS, widget(`w${index}`, { [member]: value })));

const text = { type: 'string' };
const integer = { type: 'integer' };

const spec = {
  type: 'object',
  properties: {
    text,
    integer,
    number: { type: 'number' },
    boolean: { type: 'boolean' },
    array: { type: 'array', items: text },
    object: { type: 'object', additionalProperties: text },
    between: { type: 'integer', minimum: 1, maximum: 10 },
    inside: {
      type: 'integer',
      minimum: 1,
      maximum: 10,
      exclusiveMinimum: true,
      exclusiveMaximum: true,
    },
    halves: { type: 'number', multipleOf: 0.5 },
    short: { type: 'string', minLength: 2, maxLength: 4 },
    pattern: { type: 'string', pattern: '^v[0-9]+\\.[0-9]+' },
    enum: { type: 'string', enum: ['Red', 'Green'] },
    numbers: { type: 'integer', enum: [1, 2] },
    few: { type: 'array', items: text, minItems: 1, maxItems: 2 },
    small: { type: 'object', additionalProperties: text, minProperties: 1, maxProperties: 2 },
    demanding: { type: 'object', required: ['a', 'b'], properties: { a: text, b: text } },
    list: {
      type: 'array',
      items: { type: 'object', required: ['name'], properties: { name: text, size: integer } },
    },
    map: { type: 'object', additionalProperties: integer },
    time: { type: 'string', format: 'date-time' },
    date: { type: 'string', format: 'date' },
    duration: { type: 'string', format: 'duration' },
    bytes: { type: 'string', format: 'byte' },
    uuid: { type: 'string', format: 'uuid' },
    ipv4: { type: 'string', format: 'ipv4' },
    int32: { type: 'integer', format: 'int32' },
    int64: { type: 'integer', format: 'int64' },
    odd: { type: 'string', format: 'odd' },
    either: { 'x-kubernetes-int-or-string': true, anyOf: [integer, text] },
    nullable: { type: 'string', nullable: true },
    set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
    keyed: {
      type: 'array',
      items: { type: 'object', required: ['name'], properties: { name: text, size: integer } },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    },
    any: { type: 'string', anyOf: [{ pattern: '^a' }, { pattern: '^x' }] },
    one: {
      type: 'object',
      properties: { p: text, q: text },
      oneOf: [{ required: ['p'] }, { required: ['q'] }],
    },
    all: { type: 'string', allOf: [{ pattern: '^a' }, { minLength: 2 }] },
    not: { type: 'string', not: { enum: ['bad'] } },
  },
};

const definition = widgetDefinition(spec) as {
  spec: { versions: [{ schema: { openAPIV3Schema: object } }] };
};
Object.assign(definition.spec.versions[0].schema.openAPIV3Schema, { required: ['spec'] });

/** Before that, the validator leaves out its second cause for a wrong number. */
const WHY_NO_FORMATS = whyNotSince(36, 'checks the format of a number');

const testCase = conformance('crd-validation', [widgetFixture(definition)]);

testCase('type string', rule('text', 'a', 1, true, {}, [], 1.5));
testCase('type integer', rule('integer', 1, -1, 0, 1.0, 1.5, '1', true, {}), WHY_NO_FORMATS);
testCase('type number', rule('number', 1, 1.5, '1', false));
testCase('type boolean', rule('boolean', true, false, 'true', 0));
testCase('type array', rule('array', [], ['a'], 'a', { a: 1 }, [1], ['a', 2]));
testCase('type object', rule('object', {}, { a: 'b' }, 'a', []));
testCase('minimum and maximum', rule('between', 1, 10, 0, 11));
testCase('exclusive minimum and maximum', rule('inside', 2, 1, 10));
testCase('multipleOf', rule('halves', 1.5, 1.4));
testCase('minLength and maxLength', rule('short', 'ab', 'abcd', 'a', 'abcde', 'äöüß', 'äöüßß'));
testCase('pattern', rule('pattern', 'v1.2', '1.2', 'v1', 'xv1.2x'));
testCase('enum', rule('enum', 'Red', 'red', '', 5));
testCase('enum of numbers', rule('numbers', 1, 3));
testCase('minItems and maxItems', rule('few', ['a'], [], ['a', 'b', 'c']));
testCase(
  'minProperties and maxProperties',
  rule('small', { a: 'x' }, {}, { a: 'x', b: 'y', c: 'z' }),
);
testCase('required members', rule('demanding', { a: 'x', b: 'y' }, { a: 'x' }, {}));
testCase(
  'required members of list items',
  rule('list', [{ name: 'a' }], [{}], [{ name: 'a' }, { size: 1 }]),
);
testCase('values of a map', rule('map', { a: 1 }, { a: 'x' }, { a: 1, b: 'x', c: 'y' }));
testCase(
  'format date-time',
  rule('time', '2026-11-20T01:02:03Z', '2026-11-20T01:02:03.5+02:00', '2026-11-20', 'now', '', 5),
);
testCase(
  'dates that do not exist',
  rule('time', '2026-13-20T01:02:03Z', '2026-11-20T25:02:03Z', '2026-02-30T01:02:03Z'),
);
testCase('format date', rule('date', '2026-11-20', '2026-11-20T01:02:03Z', '20.11.2026'));
testCase('format duration', rule('duration', '1h30m', '10s', '1.5h', '5 parsecs', ''));
testCase('format byte', rule('bytes', 'aGk=', 'aGk', '!!'));
testCase('format uuid', rule('uuid', '9f2a3b1c-0d4e-4f5a-8b6c-7d8e9f0a1b2c', 'none'));
testCase('format ipv4', rule('ipv4', '10.0.0.1', '10.0.0.256', '::1'));
testCase('format int32', rule('int32', 2147483647, -2147483648, 2147483648, 'x'), WHY_NO_FORMATS);
testCase('format int64', rule('int64', 9007199254740991, 1.5, 'x'), WHY_NO_FORMATS);
testCase('an unknown format is no rule', rule('odd', 'anything'));
testCase('int-or-string', rule('either', 5, '5%', 1.5, true, [], {}), WHY_NO_FORMATS);
testCase('nullable', rule('nullable', 'a', null, 5));
testCase('a list that is a set', rule('set', ['a', 'b'], ['a', 'b', 'a'], ['a', 'a', 'a']));
testCase(
  'a list that is a map',
  rule(
    'keyed',
    [{ name: 'a' }, { name: 'b' }],
    [{ name: 'a' }, { name: 'a', size: 2 }],
    [{ size: 1 }],
  ),
);
testCase('anyOf', rule('any', 'ab', 'xy', 'q'));
testCase('oneOf', rule('one', { p: 'a' }, { q: 'a' }, { p: 'a', q: 'b' }));
testCase('allOf', rule('all', 'ab', 'b', 'a'));
testCase('not', rule('not', 'fine', 'bad'));
testCase('several faults are all told', [
  post(WIDGETS, widget('w', { text: 5, between: 99, enum: 'Mauve', few: [] })),
]);
testCase('a required member of the object', [
  post(WIDGETS, { apiVersion: '$group/v1', kind: 'Widget', metadata: { name: 'w' } }),
]);
testCase('a patch is validated too', [
  post(WIDGETS, widget('w', { between: 5 })),
  merge(`${WIDGETS}/w`, { spec: { between: 50 } }),
  merge(`${WIDGETS}/w`, { spec: { between: 6 } }),
]);
testCase('metadata of custom objects is checked as that of others', [
  post(WIDGETS, widget('Not_Valid')),
  post(WIDGETS, widget('w', {}, { labels: { 'a b': 'c' } })),
  post(WIDGETS, widget('w', {}, { labels: { a: 5 } })),
  post(WIDGETS, widget('w', {}, { finalizers: ['odd one'] })),
  post(WIDGETS, { ...widget('w'), metadata: 'none' }, { anyMessage: true }),
]);
testCase('kind and apiVersion are required and must be right', [
  post(WIDGETS, { metadata: { name: 'w' } }, { anyMessage: true }),
  post(WIDGETS, { apiVersion: '$group/v2', kind: 'Widget', metadata: { name: 'w' } }),
  post(WIDGETS, { ...widget('w'), kind: 'Gadget' }),
]);
