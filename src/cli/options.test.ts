/** Tests how values of options are read. */
import { expect, test } from 'vitest';
import { parseTime } from './options.ts';

test('a duration that is too long names the longest duration', () => {
  expect(() => parseTime('99999999999h')).toThrow('the longest duration is 2562047h');
});

test('a text that is no duration names the form of a duration', () => {
  expect(() => parseTime('5d')).toThrow('a duration is a number above zero with a unit');
});
