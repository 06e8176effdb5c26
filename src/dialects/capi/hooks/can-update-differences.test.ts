/** Proves how the difference of two objects is divided into changes. */
import { expect, test } from 'vitest';
import type { Json } from '../../../util/json.ts';
import { type Change, differences } from './can-update.ts';

test.each<[string, Json, Json, Change[]]>([
  ['nothing', { a: 1 }, { a: 1 }, []],
  ['a value', { a: 1, b: 1 }, { a: 2, b: 1 }, [{ path: ['a'], from: 1, to: 2 }]],
  [
    'a value further down',
    { a: { b: 1 } },
    { a: { b: 2 } },
    [{ path: ['a', 'b'], from: 1, to: 2 }],
  ],
  [
    'a list is one change',
    { a: [1, 2] },
    { a: [1, 3] },
    [{ path: ['a'], from: [1, 2], to: [1, 3] }],
  ],
  [
    'what is added comes leaf by leaf',
    {},
    { a: { b: 1, c: 2 } },
    [
      { path: ['a', 'b'], from: undefined, to: 1 },
      { path: ['a', 'c'], from: undefined, to: 2 },
    ],
  ],
  [
    'what is taken away goes at once',
    { a: { b: 1 } },
    {},
    [{ path: ['a'], from: { b: 1 }, to: undefined }],
  ],
  ['absent is not empty', {}, { a: {} }, [{ path: ['a'], from: undefined, to: {} }]],
  [
    'an object that was a text',
    { a: 'x' },
    { a: { b: 1 } },
    [{ path: ['a'], from: 'x', to: { b: 1 } }],
  ],
  [
    'a name that every object has',
    {},
    { constructor: 1 },
    [{ path: ['constructor'], from: undefined, to: 1 }],
  ],
])('the difference: %s', (_name, from, to, changes) => {
  expect(differences(from, to)).toEqual(changes);
});

test('each value is read once, however deep it is', () => {
  let read = 0;
  const ownKeys = (): string[] => {
    read++;
    return [];
  };
  const leaf = new Proxy({}, { ownKeys });
  const deep = (inner: Json): Json =>
    Array.from({ length: 50 }).reduce<Json>((each) => ({ a: each }), [inner]);
  expect(differences(deep({}), deep(leaf))).toEqual([]);
  expect(read).toBe(1);
});
