/** Tests that a value is computed once for each object, and separately for different objects. */
import { expect, test } from 'vitest';
import { onceForEach, onceForEachAmong, onceForEachWith, onlyOnce } from './memo.ts';

test('each object is computed once, whatever comes out', () => {
  const asked: object[] = [];
  const nameOf = onceForEach((key: { readonly name?: string }) => {
    asked.push(key);
    return key.name;
  });
  const a = { name: 'a' };
  const b = { name: 'a' };
  const none = {};
  expect([a, b, none, a, none].map(nameOf)).toEqual(['a', 'a', undefined, 'a', undefined]);
  expect(asked).toEqual([a, b, none]);
});

test('an object and a text are computed once', () => {
  const asked: string[] = [];
  const joined = onceForEachWith((key: { readonly name: string }, text) => {
    asked.push(text);
    return key.name + text;
  });
  const a = { name: 'a' };
  const b = { name: 'b' };
  expect([joined(a, '1'), joined(a, '2'), joined(b, '1'), joined(a, '1')]).toEqual([
    'a1',
    'a2',
    'b1',
    'a1',
  ]);
  expect(asked).toEqual(['1', '2', '1']);
});

test('an object is computed anew when an input is another one, or one more or less', () => {
  const asked: number[] = [];
  const countOf = onceForEachAmong((_key: object, inputs: readonly unknown[]) => {
    asked.push(inputs.length);
    return inputs.length;
  });
  const key = {};
  const a = {};
  const b = {};
  const inputs = [[a], [a], [b], [b, undefined], [b, undefined], [], [], [b]];
  expect(inputs.map((each) => countOf(key, each))).toEqual([1, 1, 1, 2, 2, 0, 0, 1]);
  expect(asked).toEqual([1, 1, 2, 0, 1]);
});

test('a value that is computed only once is computed at the first call, even if it is undefined', () => {
  let computed = 0;
  const value = onlyOnce(() => {
    computed++;
    return undefined;
  });
  expect(computed).toBe(0);
  expect([value(), value()]).toEqual([undefined, undefined]);
  expect(computed).toBe(1);
});
