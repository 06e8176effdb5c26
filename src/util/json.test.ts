/** Tests that JSON values with the same meaning are equal, whatever the order of their members. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isRecord, sameJson, stableStringify } from './json.ts';

describe('the same', () => {
  test.each<[unknown, unknown]>([
    [
      { a: 1, b: { c: [1, 2], d: null } },
      { b: { d: null, c: [1, 2] }, a: 1 },
    ],
    [{ a: 1, b: undefined }, { a: 1 }],
    [
      { 2: 'b', 10: 'a' },
      { 10: 'a', 2: 'b' },
    ],
    [undefined, undefined],
    [[{ b: 1, a: 2 }], [{ a: 2, b: 1 }]],
    [JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":1}')],
  ])('%j and %j', (a, b) => {
    expect(sameJson(a, b)).toBe(true);
  });
});

describe('not the same', () => {
  test.each<[unknown, unknown]>([
    [{ a: 1 }, { a: 2 }],
    [{ a: 1 }, { b: 1 }],
    [
      [1, 2],
      [2, 1],
    ],
    [[1], { 0: 1 }],
    [1, '1'],
    [null, undefined],
    [null, {}],
    [[], {}],
    [[], null],
    [[1], [1, 1]],
    [{ a: 1, b: undefined }, { b: 1 }],
    [JSON.parse('{"__proto__":{}}'), { a: {} }],
    ['undefined', undefined],
    [{ a: null }, {}],
    [JSON.parse('{"__proto__":1}'), {}],
  ])('%j and %j', (a, b) => {
    expect(sameJson(a, b)).toBe(false);
  });
});

describe('whatever the value is', () => {
  test('two values are the same where their texts are', () => {
    const few = fc.constantFrom('a', 'b', '__proto__');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(fc.constantFrom(null, 0, 1, 'a'), tie('list'), tie('record')),
      list: fc.array(tie('value'), { maxLength: 2 }),
      record: fc.dictionary(few, fc.option(tie('value'), { nil: undefined }), { maxKeys: 2 }),
    }));
    fc.assert(
      fc.property(value, value, (a, b) => {
        expect(sameJson(a, b)).toBe(stableStringify(a) === stableStringify(b));
      }),
      { numRuns: 1_000 },
    );
  });

  test('its text means the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(stableStringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('keys of digits are sorted as texts, as Go sorts them', () => {
    expect(stableStringify({ 9: 1, 10: 2, a: undefined })).toBe('{"10":2,"9":1}');
    expect(stableStringify([undefined, 1])).toBe('[null,1]');
  });

  test('the order of its members makes no difference', () => {
    const turned = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(turned);
      if (!isRecord(value)) return value;
      return Object.fromEntries(
        Object.entries(value)
          .toReversed()
          .map(([key, inner]) => [key, turned(inner)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(stableStringify(turned(value))).toBe(stableStringify(value));
      }),
    );
  });
});

test.each<[unknown, boolean]>([
  [{}, true],
  [{ a: 1 }, true],
  [[], false],
  [null, false],
  [undefined, false],
  ['{}', false],
  [1, false],
])('%j is a record: %s', (value, wanted) => {
  expect(isRecord(value)).toBe(wanted);
});
