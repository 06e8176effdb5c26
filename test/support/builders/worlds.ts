/** Worlds for tests: the objects of both roles, with caches that are up to date. */
import type { World } from '../../../src/engine/contract/world.ts';
import { freshWorld, OwnWrites, type View, viewsOf } from '../../../src/engine/snapshot/world.ts';
import { type KubeObject, nodes } from '../../../src/kube/resources.ts';
import { controlNodes } from '../../../src/signal/names.ts';

export function buildWorld(
  controllers: readonly KubeObject[],
  workers: readonly KubeObject[],
): World {
  const views = viewsOf([
    [controlNodes, buildView(controllers)],
    [nodes, buildView(workers)],
  ]);
  return freshWorld(views, new OwnWrites());
}

/** Builds the view of a cache with these objects. Tests may replace objects in the array later. */
export function buildView(objects: readonly KubeObject[]): View<KubeObject> {
  const positions = new Map(objects.map(({ metadata }, position) => [metadata.name, position]));
  return {
    list: () => [...objects],
    get: (name) => {
      const expected = objects[positions.get(name) ?? -1];
      if (expected?.metadata.name === name) return expected;
      return objects.find(({ metadata }) => metadata.name === name);
    },
    resourceVersion: () => '1',
  };
}
