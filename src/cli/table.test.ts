/** Shows how columns are laid out. */
import { expect, test } from 'vitest';
import { aligned, table } from './phrases.ts';

test('columns are as wide as their widest cell, and nothing trails', () => {
  const rows = [
    ['w1', '12 s', ''],
    ['worker2', '', 'x'],
  ];
  expect(table(['NODE', 'FOR', 'WHY'], rows)).toEqual(['NODE     FOR   WHY', 'w1       12 s', 'worker2        x']);
});

test('a header without rows stays, rows without a header too', () => {
  expect(table(['A', 'B'], [])).toEqual(['A  B']);
  expect(aligned([])).toEqual([]);
});
