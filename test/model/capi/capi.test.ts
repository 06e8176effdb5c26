/**
 * Explores small plans of Cluster API with the real dialect, and tests that the explorer finds the planted mistakes, and that
 * docs/internals/safety.md names exactly the plans that are explored.
 */
import { expect, test } from 'vitest';
import { exploreFor } from '../planted-world.ts';
import { namesIn } from '../safety-page.ts';
import { readPage } from '../safety-page-file.ts';
import { CAPI_INVARIANTS } from './capi-invariants.ts';
import { CapiWorld } from './capi-world.ts';
import { CAPI_CONFIGURATIONS, LARGE_CAPI_CONFIGURATIONS } from './configurations.ts';
import { testCapiConfigurations } from './explored-capi.ts';
import { CAPI_MISTAKES } from './mistakes.ts';

testCapiConfigurations(CAPI_CONFIGURATIONS);

test.each(CAPI_MISTAKES)('$name: found by $breaks', async ({ configuration, parts, breaks }) => {
  const { violation } = await exploreFor(new CapiWorld(configuration, parts), breaks);
  expect(violation?.invariant).toBe(breaks);
});

test('every invariant of the Machines of Cluster API is broken by some mistake', () => {
  const broken = new Set(CAPI_MISTAKES.map(({ breaks }) => breaks));
  expect(CAPI_INVARIANTS.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});

test('docs/internals/safety.md names exactly the plans of Cluster API that are explored, and their invariants', () => {
  const page = readPage();
  const names = (table: string): string[] => namesIn(page, table);
  expect(names('capi')).toEqual(CAPI_CONFIGURATIONS.map(({ name }) => name));
  expect(names('large-capi')).toEqual(LARGE_CAPI_CONFIGURATIONS.map(({ name }) => name));
  const [, section = ''] = page.split('(`test/model/capi/`)');
  const [explained = ''] = section.split('<!-- capi -->');
  expect(CAPI_INVARIANTS.filter(({ name }) => !explained.includes(`**\`${name}\`.**`))).toEqual([]);
});
