/** The world of one snapshot. It stays as it was when the snapshot was taken, whatever the watches show later. */
import { type KubeObject, keyAt, keyOf, type Resource } from '../../kube/resources.ts';
import { onceForEach } from '../../util/memo.ts';
import type { World } from '../contract/world.ts';
import { kindOf } from './world.ts';

/**
 * Returns a world that does not change. It only needs to keep a reference to each list, because a list is never
 * modified: when an object changes, a new list replaces the old list.
 */
export function frozenWorld(world: World, kinds: readonly Resource[]): World {
  const lists = new Map(kinds.map((kind) => [kindOf(kind), world.list(kind)]));
  const outdated = new Map(kinds.map((kind) => [kindOf(kind), world.outdated?.(kind)]));
  const listOf = <T extends KubeObject>(kind: Resource<T>): readonly T[] => {
    const list = lists.get(kindOf(kind));
    if (!list) throw new Error(`${kind.plural} are not part of the snapshot`);
    return list as readonly T[];
  };
  return {
    list: listOf,
    get: <T extends KubeObject>(kind: Resource<T>, name: string, namespace?: string) => {
      const list = listOf(kind);
      // While the world still has the same list, it also has the same objects, and no index of the list is needed. An index costs memory in
      // a large cluster.
      if (world.list(kind) === list) return world.get(kind, name, namespace);
      return byKey(list).get(keyAt(name, namespace)) as T | undefined;
    },
    outdated: (kind) => outdated.get(kindOf(kind)) ?? NONE,
  };
}

const NONE: ReadonlySet<string> = new Set();

/** The objects are indexed once for each list, because a list of all Nodes stays the same for many snapshots. */
const byKey = onceForEach(
  (list: readonly KubeObject[]) => new Map(list.map((object) => [keyOf(object), object])),
);
