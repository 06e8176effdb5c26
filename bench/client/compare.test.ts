/** Tests how the figures are computed from the rounds: first the ratio of each round, then the median of the ratios. */
import { expect, test } from 'vitest';
import { clientFindings } from './compare.ts';

test('the ratios are the medians of the rounds, not the ratios of the medians', () => {
  const rounds = [
    { refit: 100, bare: 100, clientNode: 200 },
    { refit: 50, bare: 40, clientNode: 500 },
    { refit: 200, bare: 100, clientNode: 800 },
  ];
  const { figures, details } = clientFindings(rounds);
  expect(figures.map(({ key, value }) => [key, value])).toEqual([
    ['client.requestRatioVsBare', 1.25],
    ['client.requestRatioVsClientNode', 4],
  ]);
  expect(details[0]?.rows).toEqual([
    ['1', '100', '100', '200'],
    ['2', '40', '50', '500'],
    ['3', '100', '200', '800'],
  ]);
});
