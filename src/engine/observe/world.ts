/** The controller's World: informer caches, corrected by this process's own writes, which they may lack. */
import { compareResourceVersions, keyOf, pathOf, type Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import { type Clock, systemClock } from '../../util/clock.ts';
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

/** Longer than a watch lags; limited, as a cluster restored from a backup has lower versions. */
const LAG_MS = 60_000;

interface OwnWrite {
  readonly object: KubeObject;
  /** Milliseconds by the steady clock. */
  readonly at: number;
}

export class OwnWrites {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By kind, then by namespace and name. */
  readonly #written = new Map<string, Map<string, OwnWrite>>();

  constructor(clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#clock = clock;
  }

  /** Call with the server's answer to every write. */
  remember(resource: Resource, object: KubeObject): void {
    this.#of(resource).set(keyOf(object), { object, at: this.#clock.monotonic() });
  }

  /** The newest known object: the cached one, or our own last write until the cache has it. */
  latest<T extends KubeObject>(resource: Resource<T>, view: View<T>, name: string, namespace?: string): T | undefined {
    const seen = view.get(name, namespace);
    const own = this.#of(resource);
    // Fast path: usually no write is pending.
    if (own.size === 0) return seen;
    const key = keyOf({ metadata: { name, ...(namespace === undefined ? {} : { namespace }) } });
    const { object, at = 0 } = own.get(key) ?? {};
    if (!object) return seen;
    const isSeen = hasReached(
      seen?.metadata.resourceVersion ?? view.resourceVersion(),
      object.metadata.resourceVersion,
    );
    if (isSeen || this.#clock.monotonic() - at > LAG_MS) {
      own.delete(key);
      return seen;
    }
    return object as T;
  }

  /** The list of the view itself while it lacks nothing. */
  latestOfAll<T extends KubeObject>(resource: Resource<T>, view: View<T>): readonly T[] {
    const newer = new Map<T, T>();
    const added: T[] = [];
    for (const { object } of this.#of(resource).values()) {
      const { metadata } = object;
      const seen = view.get(metadata.name, metadata.namespace);
      const newest = this.latest(resource, view, metadata.name, metadata.namespace);
      if (newest === seen || !newest) continue;
      if (seen) newer.set(seen, newest);
      else added.push(newest);
    }
    if (newer.size === 0 && added.length === 0) return view.list();
    return [...view.list().map((object) => newer.get(object) ?? object), ...added];
  }

  #of(resource: Resource): Map<string, OwnWrite> {
    const kind = kindOf(resource);
    const objects = this.#written.get(kind) ?? new Map<string, OwnWrite>();
    this.#written.set(kind, objects);
    return objects;
  }
}

const kindOf = onceForEach((resource: Resource) => pathOf(resource));

function hasReached(seen: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || (seen !== undefined && compareResourceVersions(seen, wanted) >= 0);
}
