/** Tests that no invariant of Cluster API's Machines is violated, and that docs/internals/safety.md has the same counts. */
import { testWorlds } from '../explored-worlds.ts';
import type { CapiConfiguration } from './capi-objects.ts';
import { CapiWorld } from './capi-world.ts';
import { capiRow } from './configurations.ts';

export function testCapiConfigurations(configurations: readonly CapiConfiguration[]): void {
  testWorlds(configurations, (configuration) => new CapiWorld(configuration), capiRow);
}
