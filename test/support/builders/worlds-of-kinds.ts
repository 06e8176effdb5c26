/** Worlds of any kinds for tests, with caches that are up to date. */
import type { World } from '../../../src/engine/contract/world.ts';
import { freshWorld, OwnWrites, viewsOf } from '../../../src/engine/snapshot/world.ts';
import type { KubeObject, Resource } from '../../../src/kube/resources.ts';
import { buildView } from './worlds.ts';

export function buildWorldOf(
  ...kinds: readonly (readonly [Resource, readonly KubeObject[]])[]
): World {
  return freshWorld(
    viewsOf(kinds.map(([resource, objects]) => [resource, buildView(objects)] as const)),
    new OwnWrites(),
  );
}
