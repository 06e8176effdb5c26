/** Explores plans with status shards, and finds the planted mistakes. */
import { expect, test } from 'vitest';
import { explore, printViolation } from '../explorer.ts';
import { namesIn } from '../safety-page.ts';
import { readPage } from '../safety-page-file.ts';
import {
  LARGE_SHARD_CONFIGURATIONS,
  SHARD_CONFIGURATIONS,
  shardRow,
} from '../status-shards/configurations.ts';
import { SHARD_MISTAKES } from '../status-shards/mistakes.ts';
import { SHARD_INVARIANTS } from '../status-shards/shard-invariants.ts';
import { ShardsWorld } from '../status-shards/shards-world.ts';

const REFRESH = 'docs/internals/safety.md is older than the code: npm run safety writes it anew';

test.each(SHARD_CONFIGURATIONS)('$name', async (configuration) => {
  const exploration = await explore(new ShardsWorld(configuration));
  const { violation } = exploration;
  expect(violation === undefined ? '' : printViolation(violation)).toBe('');
  expect(exploration.isWhole).toBe(true);
  expect(readPage().split('\n'), REFRESH).toContain(shardRow(configuration, exploration));
});

test('docs/internals/safety.md names every invariant of plans with status shards, and exactly these configurations', () => {
  const page = readPage();
  const [, section = ''] = page.split('runs [plans with status shards]');
  expect(SHARD_INVARIANTS.filter(({ name }) => !section.includes(`\`${name}\``))).toEqual([]);
  expect(namesIn(page, 'status-shards')).toEqual(SHARD_CONFIGURATIONS.map(({ name }) => name));
  expect(namesIn(page, 'large-status-shards')).toEqual(
    LARGE_SHARD_CONFIGURATIONS.map(({ name }) => name),
  );
});

test.each(SHARD_MISTAKES)('$name: found by $breaks', async ({ configuration, leader, breaks }) => {
  const world = new ShardsWorld(configuration, leader);
  const { violation } = await explore({
    initial: world.initial,
    invariants: world.invariants.filter(({ name }) => name === breaks),
    invariantsAtRest: world.invariantsAtRest.filter(({ name }) => name === breaks),
    next: async (state) => await world.next(state),
    isFinal: (state) => world.isFinal(state),
  });
  expect(violation?.invariant).toBe(breaks);
});

test('every invariant is broken by some mistake', () => {
  const broken = new Set(SHARD_MISTAKES.map(({ breaks }) => breaks));
  expect(SHARD_INVARIANTS.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});
