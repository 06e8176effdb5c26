/** The controller's World: informer caches, corrected by this process's own writes, which they may lack. */
import { compareResourceVersions, keyOf, pathOf, type Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import { onceForEach } from '../../util/memo.ts';
import type { World } from '../dialect.ts';

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

/** An informer's cache of one kind; it lags behind the server. */
export type View<T extends KubeObject> = Pick<Informer<T>, 'get' | 'list' | 'resourceVersion'>;

/** Of a kind that cannot be read. */
export const NOTHING: View<KubeObject> = { list: () => [], get: () => undefined, resourceVersion: () => undefined };

export class OwnWrites {
  /** By kind, then by namespace and name. */
  readonly #written = new Map<string, Map<string, KubeObject>>();

  /** Call with the server's answer to every write. */
  remember(resource: Resource, answer: KubeObject): void {
    this.#of(resource).set(keyOf(answer), answer);
  }

  /** The newest known object: the cached one, or our own last write until the cache has it. */
  latest<T extends KubeObject>(resource: Resource<T>, view: View<T>, name: string, namespace?: string): T | undefined {
    const seen = view.get(name, namespace);
    const own = this.#of(resource);
    // Fast path: usually no write is pending.
    if (own.size === 0) return seen;
    const key = keyOf({ metadata: { name, ...(namespace === undefined ? {} : { namespace }) } });
    const written = own.get(key) as T | undefined;
    if (!written) return seen;
    if (hasReached(seen?.metadata.resourceVersion ?? view.resourceVersion(), written.metadata.resourceVersion)) {
      own.delete(key);
      return seen;
    }
    return written;
  }

  /** The list of the view itself while it lacks nothing. */
  latestOfAll<T extends KubeObject>(resource: Resource<T>, view: View<T>): readonly T[] {
    const newer = new Map<T, T>();
    const added: T[] = [];
    for (const { metadata } of this.#of(resource).values()) {
      const seen = view.get(metadata.name, metadata.namespace);
      const newest = this.latest(resource, view, metadata.name, metadata.namespace);
      if (newest === seen || !newest) continue;
      if (seen) newer.set(seen, newest);
      else added.push(newest);
    }
    if (newer.size === 0 && added.length === 0) return view.list();
    return [...view.list().map((object) => newer.get(object) ?? object), ...added];
  }

  #of(resource: Resource): Map<string, KubeObject> {
    const kind = kindOf(resource);
    const objects = this.#written.get(kind) ?? new Map<string, KubeObject>();
    this.#written.set(kind, objects);
    return objects;
  }
}

const kindOf = onceForEach((resource: Resource) => pathOf(resource));

function hasReached(seen: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || (seen !== undefined && compareResourceVersions(seen, wanted) >= 0);
}
