/** Shows how ages, lists of names, long sentences and columns are written. */
import { expect, test } from 'vitest';
import { later, MINUTE, SECOND, T0 } from '../../test/support/clock/times.ts';
import { listed } from '../util/phrases.ts';
import { age, aligned, table, wrapped, wrappedLines } from './phrases.ts';

test.each<[number, string]>([
  [999, '0 s'],
  [1999, '1 s'],
  [59_999, '59 s'],
  [3 * MINUTE + 20 * SECOND, '3 min 20 s'],
  [-5 * SECOND, '0 s'],
])('what happened %d ms ago is %s old', (ms, text) => {
  expect(age(later(0), T0 + ms)).toBe(text);
});

test('a time that a node made up has no age', () => {
  expect(age('soon', T0)).toBe('0 s');
});

test.each<[string[], string]>([
  [[], ''],
  [['a'], 'a'],
  [['a', 'b', 'c'], 'a, b, c'],
  [['a', 'b', 'c', 'd'], 'a, b, c and 1 more'],
])('at most three of the names %j are listed', (names, text) => {
  expect(listed(names, 3)).toBe(text);
});

test.each<[string, number, string[]]>([
  ['', 10, ['']],
  ['one line', Number.POSITIVE_INFINITY, ['one line']],
  ['aaa bbb ccc ddd', 7, ['aaa bbb', '  ccc', '  ddd']],
  ['for 29 min 59 s, or 2 h', 12, ['for 29 min', '  59 s, or', '  2 h']],
  ['a wordlongerthantheline b', 8, ['a', '  wordlongerthantheline', '  b']],
])('the text %j is wrapped into lines of %d', (text, width, lines) => {
  expect(wrapped(text, width)).toEqual(lines);
});

test('columns are as wide as their widest cell, and nothing trails', () => {
  const rows = [
    ['w1', '12 s', ''],
    ['worker2', '', 'x'],
  ];
  expect(table(['NODE', 'FOR', 'WHY'], rows)).toEqual([
    'NODE     FOR   WHY',
    'w1       12 s',
    'worker2        x',
  ]);
});

test('a header without rows stays, rows without a header too', () => {
  expect(table(['A', 'B'], [])).toEqual(['A  B']);
  expect(aligned([])).toEqual([]);
});

test.each([
  [60, 6, 'NAME       production'],
  [80, 3, 'NAME        CHANNEL  CURRENT         AVAILABLE      STATE         CHECKED'],
])(
  'a table of many columns fits %i columns, if need be by a line for each cell',
  (width, count, first) => {
    const header = ['NAME', 'CHANNEL', 'CURRENT', 'AVAILABLE', 'STATE', 'CHECKED', 'WINDOW'];
    const row = [
      'production',
      'stable',
      'v1.35.10+k0s.0',
      'v1.36.3+k0s.0',
      'WindowClosed',
      '3 min ago',
      '',
    ];
    const lines = table(header, [row], width);
    expect(lines).toHaveLength(count);
    expect(lines[0]).toContain(first);
    for (const line of lines) expect(line).toMatch(new RegExp(`^.{1,${width}}$`));
    expect(table(header, [row])).toHaveLength(2);
  },
);

test('each line of a text is broken with its own indent', () => {
  expect(wrappedLines('one two\n  three four', 8)).toBe('one two\n  three\n    four');
});
