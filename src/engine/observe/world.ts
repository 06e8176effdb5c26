/** The controller's World: informer caches, corrected by its own last writes. */
import { apiVersionOf, type Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import { onceForEach } from '../../util/memo.ts';
import type { World } from '../dialect.ts';
import type { OwnWrites, View } from './own-writes.ts';

/** A view of each kind that the dialect watches. */
export interface Views {
  of<T extends KubeObject>(resource: Resource<T>): View<T>;
}

export function viewsOf(entries: Iterable<readonly [Resource, View<KubeObject>]>): Views {
  const views = new Map([...entries].map(([resource, view]) => [kindOf(resource), view]));
  return {
    of<T extends KubeObject>(resource: Resource<T>): View<T> {
      const view = views.get(kindOf(resource)) as View<T> | undefined;
      if (!view) throw new Error(`${resource.plural} are not watched`);
      return view;
    },
  };
}

export function freshWorld(views: Views, ownWrites: OwnWrites): World {
  return {
    get: (resource, name, namespace) => ownWrites.latest(resource, views.of(resource), name, namespace),
    list: (resource) => ownWrites.latestOfAll(resource, views.of(resource)),
  };
}

const kindOf = onceForEach((resource: Resource) => `${apiVersionOf(resource)}/${resource.plural}`);
