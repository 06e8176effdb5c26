/** Explores one configuration, and makes sure that what it is about was reached. */
import type { Configuration } from './cluster.ts';
import { type Exploration, explore } from './explorer.ts';
import { World } from './world.ts';

/** Throws where a person should turn the plan back, and no state on the way back was reached: then nothing was checked. */
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
