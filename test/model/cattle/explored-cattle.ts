/** Tests that no invariant of a Plan of Rancher is violated, and that docs/internals/safety.md has the same counts. */
import { expect, test } from 'vitest';
import { REFRESH } from '../explored.ts';
import { explore, printViolation } from '../explorer.ts';
import { readPage } from '../safety-page-file.ts';
import type { CattleConfiguration } from './cattle-objects.ts';
import { CattleWorld } from './cattle-world.ts';
import { cattleRow } from './configurations.ts';

export function testCattleConfigurations(configurations: readonly CattleConfiguration[]): void {
  test.each(configurations)('$name', async (configuration) => {
    const exploration = await explore(new CattleWorld(configuration));
    const { violation } = exploration;
    expect(violation === undefined ? '' : printViolation(violation)).toBe('');
    expect(exploration.isWhole).toBe(true);
    expect(readPage().split('\n'), REFRESH).toContain(cattleRow(configuration, exploration));
  });
}
