/** Explores one configuration, and checks that the exploration reached the situation that the configuration is for. */
import type { Configuration } from './cluster.ts';
import { type Exploration, explore } from './explorer.ts';
import { World } from './world.ts';

/**
 * Throws an error if a person should turn the plan back, but no state after that was reached. In that case nothing was
 * checked.
 */
export async function exploreConfiguration(configuration: Configuration): Promise<Exploration> {
  const world = new World(configuration);
  let wentBack = false;
  const exploration = await explore(world.model(), {
    onState: (state) => {
      wentBack ||= world.isOnWayBack(state);
    },
  });
  if (configuration.turnsBack !== undefined && !wentBack && exploration.violation === undefined)
    throw new Error(`${configuration.name}: no plan was turned back`);
  return exploration;
}
