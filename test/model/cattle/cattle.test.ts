/**
 * Explores small Plans of Rancher with the real dialect, and tests that the explorer finds the planted mistakes, and that
 * docs/internals/safety.md names exactly the Plans that are explored.
 */
import { expect, test } from 'vitest';
import { exploreFor } from '../planted-world.ts';
import { namesIn } from '../safety-page.ts';
import { readPage } from '../safety-page-file.ts';
import { CATTLE_INVARIANTS } from './cattle-invariants.ts';
import { CattleWorld } from './cattle-world.ts';
import { CATTLE_CONFIGURATIONS, LARGE_CATTLE_CONFIGURATIONS } from './configurations.ts';
import { testCattleConfigurations } from './explored-cattle.ts';
import { CATTLE_MISTAKES } from './mistakes.ts';

testCattleConfigurations(CATTLE_CONFIGURATIONS);

test.each(CATTLE_MISTAKES)('$name: found by $breaks', async ({ configuration, leader, breaks }) => {
  const { violation } = await exploreFor(new CattleWorld(configuration, leader), breaks);
  expect(violation?.invariant).toBe(breaks);
});

test('every invariant of the Plans of Rancher is broken by some mistake', () => {
  const broken = new Set(CATTLE_MISTAKES.map(({ breaks }) => breaks));
  expect(CATTLE_INVARIANTS.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});

test('docs/internals/safety.md names exactly the Plans of Rancher that are explored', () => {
  const names = (table: string): string[] => namesIn(readPage(), table);
  expect(names('cattle')).toEqual(CATTLE_CONFIGURATIONS.map(({ name }) => name));
  expect(names('large-cattle')).toEqual(LARGE_CATTLE_CONFIGURATIONS.map(({ name }) => name));
});
