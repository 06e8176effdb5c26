/** Tests how wrong input is described: the field, what was found, and what would be right. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { describeIssues } from './describe-issue.ts';

const schema = z.object({
  url: z.string().regex(/^https:/, 'expected an https URL'),
  count: z.int().min(1),
  name: z.string().regex(/^[a-z]+$/, 'is not a name; use lower-case letters'),
});

function told(input: unknown): string {
  const { error } = schema.safeParse(input, { reportInput: true });
  return error ? describeIssues(error, 'the file') : 'right';
}

test.each([
  [null, 'the file: is empty, expected an object'],
  [
    { url: 'http://me:secret@c/?token=1', count: 0, name: 'A b' },
    'url: is the text "http://***@c/?***", expected an https URL; count: is the number 0, expected a number of at least 1; name: "A b" is not a name; use lower-case letters',
  ],
  [
    { url: 'https://c', name: 7 },
    'count: is missing, expected a whole number; name: is the number 7, expected a text: put it in quotes',
  ],
])('%o', (input, line) => {
  expect(told(input)).toBe(line);
});

test.each<[string, z.ZodType, unknown, string]>([
  ['too small', z.int().min(0), -1, 'is the number -1, expected a number of at least 0'],
  ['too big', z.int().max(10), 11, 'is the number 11, expected a number of at most 10'],
  ['a fraction', z.int(), 1.5, 'is the number 1.5, expected a whole number'],
  [
    'an empty list',
    z.array(z.int()).min(1),
    [],
    'has 0 items, expected a list with at least 1 item',
  ],
  [
    'a long list',
    z.array(z.int()).max(1),
    [1, 2],
    'has 2 items, expected a list with at most 1 item',
  ],
  [
    'a short text',
    z.string().min(2),
    'a',
    'is the text "a", expected a text with at least 2 characters',
  ],
  ['none of several', z.enum(['A', 'B', 'C']), 'D', 'is the text "D", expected A, B or C'],
  ['none of one', z.literal('A'), 'D', 'is the text "D", expected A'],
  [
    'neither of two kinds',
    z.union([z.int(), z.string().regex(/%$/, 'expected a share such as 10%')]),
    true,
    'is the boolean true, expected a whole number or a text',
  ],
])('%s, in plain words', (_name, kind, input, line) => {
  const { error } = kind.safeParse(input, { reportInput: true });
  expect(error && describeIssues(error, 'it')).toBe(`it: ${line}`);
});

test('of many, the first ten', () => {
  const { error } = z.array(z.int()).safeParse(
    Array.from({ length: 12 }, () => 'x'),
    { reportInput: true },
  );
  expect(error && describeIssues(error, 'the file')).toMatch(
    /\[9\]: is the text "x", expected a whole number; 2 more$/,
  );
});
