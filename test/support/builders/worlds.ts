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

export function buildView(objects: readonly KubeObject[]): View<KubeObject> {
  // If several objects have the same name, the first of them counts.
  const byName = new Map(objects.toReversed().map((object) => [object.metadata.name, object]));
  return {
    list: () => [...objects],
    get: (name) => byName.get(name),
    resourceVersion: () => '1',
  };
}
