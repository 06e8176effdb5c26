/** Tests that no invariant of a world is violated, and that docs/internals/safety.md has the same counts. */
import { expect, test } from 'vitest';
import { REFRESH } from './explored.ts';
import { type Exploration, explore, type Model, printViolation } from './explorer.ts';
import { readPage } from './safety-page-file.ts';

export function testWorlds<C extends { readonly name: string }>(
  configurations: readonly C[],
  worldOf: (configuration: C) => Model,
  rowOf: (configuration: C, exploration: Exploration) => string,
): void {
  test.each(configurations)('$name', async (configuration) => {
    const exploration = await explore(worldOf(configuration));
    const { violation } = exploration;
    expect(violation === undefined ? '' : printViolation(violation)).toBe('');
    expect(exploration.isWhole).toBe(true);
    expect(readPage().split('\n'), REFRESH).toContain(rowOf(configuration, exploration));
  });
}
