/** Tests that a key from untrusted input never finds an inherited member. */
import { expect, test } from 'vitest';
import { ownMember } from './own-member.ts';

test('finds the members of the object, and undefined for every other key', () => {
  expect(ownMember({ a: 1 }, 'a')).toBe(1);
  expect(ownMember({ a: 1 }, 'b')).toBeUndefined();
  expect(ownMember(undefined, 'a')).toBeUndefined();
});

test.each(Object.getOwnPropertyNames(Object.prototype))('does not find the inherited %s', (key) => {
  expect(ownMember({}, key)).toBeUndefined();
  const written: unknown = JSON.parse(`{${JSON.stringify(key)}: 1}`);
  expect(ownMember(written as Record<string, number>, key)).toBe(1);
});
