/** Tests that `scalarText` never fails, whatever the JSON value is. */
import { expect, test } from 'vitest';
import { scalarText } from './scalar-text.ts';

test.each<[string, string]>([
  ['"v1.36.3"', 'v1.36.3'],
  ['30', '30'],
  ['false', 'false'],
  ['null', ''],
  ['{"toString":1,"valueOf":1}', ''],
  ['[["a"]]', ''],
  [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, ''],
])('%.30s', (json, text) => {
  expect(scalarText(JSON.parse(json))).toBe(text);
});
