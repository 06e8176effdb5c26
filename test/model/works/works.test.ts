/**
 * Explores rollouts that create or start work instead of signalling nodes, and tests that the explorer finds the
 * planted mistakes.
 */
import { expect, test } from 'vitest';
import { explore, printViolation } from '../explorer.ts';
import { readPage } from '../safety-page-file.ts';
import { WORK_CONFIGURATIONS, workRow } from './configurations.ts';
import { WORK_MISTAKES } from './mistakes.ts';
import { WorksWorld } from './works-world.ts';

const REFRESH = 'docs/internals/safety.md is older than the code: npm run safety writes it anew';

test.each(WORK_CONFIGURATIONS)('$name', async (configuration) => {
  const exploration = await explore(new WorksWorld(configuration));
  const { violation } = exploration;
  expect(violation === undefined ? '' : printViolation(violation)).toBe('');
  expect(readPage().split('\n'), REFRESH).toContain(workRow(configuration, exploration));
});

test.each(WORK_MISTAKES)('$name: found by $breaks', async ({ configuration, leader, breaks }) => {
  const world = new WorksWorld(configuration, leader);
  const { violation } = await explore({
    initial: world.initial,
    invariants: world.invariants.filter(({ name }) => name === breaks),
    next: async (state) => await world.next(state),
    isFinal: (state) => world.isFinal(state),
  });
  expect(violation?.invariant).toBe(breaks);
});
