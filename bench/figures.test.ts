/** Tests the output of the benchmark for people and for scripts. */
import { expect, test } from 'vitest';
import { type Figure, formatNumber, renderFindings, renderJson } from './figures.ts';

const figures: readonly Figure[] = [
  {
    key: 'a.ratio',
    value: 5.0004,
    unit: '×',
    goal: { bound: 'least', limit: 5 },
    madeOf: '10 ms ÷ 2 ms',
  },
  {
    key: 'a.time',
    value: 100.04,
    unit: 'ms',
    goal: { bound: 'most', limit: 100 },
    madeOf: 'one write',
  },
  { key: 'b', value: 3, unit: 'MiB', madeOf: '' },
];

test('each figure has a line with its goal, and whether that is met; details follow', () => {
  const details = [{ title: 'Rounds', header: ['ROUND', 'MS'], rows: [['1', '10']] }];
  expect(renderFindings({ figures, details })).toEqual([
    'FIGURE   VALUE  UNIT  GOAL           MADE OF',
    'a.ratio  5      ×     ≥ 5    met     10 ms ÷ 2 ms',
    'a.time   100    ms    ≤ 100  MISSED  one write',
    'b        3      MiB',
    '',
    'Rounds:',
    'ROUND  MS',
    '1      10',
  ]);
});

test('a goal is met where the JSON says so', () => {
  const goal = { bound: 'most', limit: 1.1 } as const;
  const verdicts = [1.1004, 1.1006].map((value) => {
    const figure = { key: 'a', value, unit: '', goal, madeOf: '' };
    return [
      /met|MISSED/.exec(renderFindings({ figures: [figure], details: [] }).join())?.[0],
      renderJson([figure]),
    ];
  });
  expect(verdicts).toEqual([
    ['met', '{"a":1.1}'],
    ['MISSED', '{"a":1.101}'],
  ]);
});

test('the JSON is one flat object, exact enough for every goal', () => {
  expect(renderJson(figures)).toBe('{"a.ratio":5,"a.time":100.04,"b":3}');
});

test.each([
  [0.12345, '0.123'],
  [9.999, '10'],
  [99.95, '100'],
  [1234.5, '1235'],
  [0, '0'],
])('%d is shown as %s', (value, text) => {
  expect(formatNumber(value)).toBe(text);
});
