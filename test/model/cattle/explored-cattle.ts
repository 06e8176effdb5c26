/** Tests that no invariant of a Plan of Rancher is violated, and that docs/internals/safety.md has the same counts. */
import { testWorlds } from '../explored-worlds.ts';
import type { CattleConfiguration } from './cattle-objects.ts';
import { CattleWorld } from './cattle-world.ts';
import { cattleRow } from './configurations.ts';

export function testCattleConfigurations(configurations: readonly CattleConfiguration[]): void {
  testWorlds(configurations, (configuration) => new CattleWorld(configuration), cattleRow);
}
