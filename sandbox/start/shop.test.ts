/** Tests the error rate of the shop of `--canary`: it is zero until two nodes run the release. */
import { expect, test } from 'vitest';
import { errorRate, startShop } from './shop.ts';

test.each([
  [[], 0],
  [['old'], 0],
  [['new'], 0],
  [['old', 'old', 'old', 'old', 'old'], 0],
  [['new', 'old', 'old', 'old', 'old'], 0],
  [['new', 'new', 'old', 'old', 'old'], 0.1],
  [['new', 'new'], 1],
])('%j: %d of the calls fail', (versions, rate) => {
  expect(errorRate(versions, 'new')).toBe(rate);
});

test('a node that restarts takes no part', async () => {
  const workers = [
    { version: async () => await Promise.resolve('new') },
    { version: async () => await Promise.resolve('new') },
    { version: async () => await Promise.reject(new Error('it restarts')) },
  ];
  const shop = await startShop(workers, 'new');
  const answer = await (await fetch(`${shop.url}/api/v1/query`)).json();
  await shop.stop();
  const data = { resultType: 'vector', result: [{ metric: {}, value: [0, '1'] }] };
  expect(answer).toEqual({ status: 'success', data });
});
