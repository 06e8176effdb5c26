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
    'url: is the text "http://***@c/?***", expected an https URL; count: is the number 0, expected number to be >=1; name: "A b" is not a name; use lower-case letters',
  ],
  [
    { url: 'https://c', name: 7 },
    'count: is missing, expected a whole number; name: is the number 7, expected a text: put it in quotes',
  ],
])('%o', (input, line) => {
  expect(told(input)).toBe(line);
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
