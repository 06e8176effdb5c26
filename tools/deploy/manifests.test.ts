/**
 * Tests that the chart contains the addresses in package.json, and that it contains no address if package.json has
 * none.
 */
import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { chartOf } from './manifests.ts';

const PAGE = 'https://example.com/refit';
const SOURCE = 'https://git.example.com/refit.git';

test('without addresses the chart has neither home nor sources', () => {
  const chart = chartOf({ ...manifest, homepage: '', repository: '' });
  expect(chart).toMatchObject({ name: 'refit', version: manifest.version });
  expect(chart).not.toHaveProperty('home');
  expect(chart).not.toHaveProperty('sources');
});

test('with addresses the chart has both', () => {
  expect(chartOf({ ...manifest, homepage: PAGE, repository: SOURCE })).toMatchObject({
    home: PAGE,
    sources: [SOURCE],
  });
});
