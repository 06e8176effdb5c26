/** Proves that what was computed from an object is computed once, and for each object on its own. */
import { expect, test } from 'vitest';
import { onceForEach } from './memo.ts';

test('each object is computed once, whatever comes out', () => {
  const asked: object[] = [];
  const nameOf = onceForEach((key: { readonly name?: string }) => {
    asked.push(key);
    return key.name;
  });
  const [a, b, none] = [{ name: 'a' }, { name: 'a' }, {}];
  expect([a, b, none, a, none].map(nameOf)).toEqual(['a', 'a', undefined, 'a', undefined]);
  expect(asked).toEqual([a, b, none]);
});
