/** The tests that follow the first advice in each of some situations. */
import { expect, test } from 'vitest';
import { follow } from './follow.ts';
import type { Path } from './paths.ts';

export function testAdvice(paths: readonly Path[]): void {
  test.each(paths.map((path) => ({ ...path, dialect: path.lab.dialect })))(
    'a person who follows the first advice of $dialect in the situation $situation ends this situation',
    async (path) => {
      const { situation, refusals, isOver, shown } = await follow(path);
      expect(situation, shown).toBe(path.situation);
      expect(refusals, shown).toEqual([]);
      expect(isOver, shown).toBe(true);
    },
  );
}
