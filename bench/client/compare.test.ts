/** Proves how rounds become the figure: ratios first, then their median. */
import { expect, test } from 'vitest';
import { clientFindings } from './compare.ts';

test('the ratio is the median of the rounds, not the ratio of the medians', () => {
  const rounds = [
    { refit: 100, clientNode: 200 },
    { refit: 50, clientNode: 500 },
    { refit: 200, clientNode: 800 },
  ];
  const { figures, details } = clientFindings(rounds);
  expect(figures.map(({ key, value }) => [key, value])).toEqual([['client.requestRatioVsClientNode', 4]]);
  expect(details[0]?.rows).toEqual([
    ['1', '200', '100', '2'],
    ['2', '500', '50', '10'],
    ['3', '800', '200', '4'],
  ]);
});
