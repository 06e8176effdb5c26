/** The controller's World: informer caches, corrected by this process's own writes, which they may lack. */
import {
  compareResourceVersions,
  type KubeObject,
  keyAt,
  keyOf,
  pathOf,
  type Resource,
} from '../../kube/resources.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import { type Clock, systemClock } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import type { World } from '../contract/world.ts';

export type Views = <T extends KubeObject>(resource: Resource<T>) => View<T>;

export function viewsOf(entries: Iterable<readonly [Resource, View<KubeObject>]>): Views {
  const views = new Map([...entries].map(([resource, view]) => [kindOf(resource), view]));
  return <T extends KubeObject>(resource: Resource<T>) => {
    const view = views.get(kindOf(resource)) as View<T> | undefined;
    if (!view) throw new Error(`${resource.plural} are not watched`);
    return view;
  };
}

export function freshWorld(views: Views, ownWrites: OwnWrites): World {
  return {
    get: (resource, name, namespace) =>
      ownWrites.latest(resource, views(resource), name, namespace),
    list: (resource) => ownWrites.latestOfAll(resource, views(resource)),
    outdated: (resource) => ownWrites.unseen(resource, views(resource)),
  };
}

/** An informer's cache of one kind; it lags behind the server. */
export type View<T extends KubeObject> = Pick<Informer<T>, 'get' | 'list' | 'resourceVersion'>;

/** The view of a kind that cannot be read. */
export const NOTHING: View<KubeObject> = {
  list: () => [],
  get: () => undefined,
  resourceVersion: () => undefined,
};

/** Longer than a watch lags; limited, as a cluster restored from a backup has lower versions. */
const LAG_MS = 60_000;

interface OwnWrite {
  readonly object: KubeObject;
  /** Milliseconds by the steady clock. */
  readonly at: number;
}

/** Milliseconds in which the answer to our own write says as much as a read, and a list with such writes is not made again. */
const FRESH_MS = 1_000;

/** A list of a view, and the same list with this process's own writes in it. */
type Corrected = Pick<OwnWrite, 'at'> & Readonly<Record<'listed' | 'all', readonly KubeObject[]>>;

export class OwnWrites {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** The own writes by kind, then by namespace and name. */
  readonly #written = new Map<string, Map<string, OwnWrite>>();
  /** By kind: what depends on all objects is computed once for each list. */
  readonly #corrected = new Map<string, Corrected>();
  #last: OwnWrite | undefined;

  constructor(clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#clock = clock;
  }

  /** Must be called with the server's answer to every write. */
  remember(resource: Resource, object: KubeObject): void {
    this.#last = { object, at: this.#clock.monotonic() };
    this.#of(resource).set(keyOf(object), this.#last);
    this.#corrected.delete(kindOf(resource));
  }

  /** True if this version is our own last write, and the server has just answered it. */
  isFresh({ metadata }: KubeObject): boolean {
    const last = this.#last;
    if (last === undefined || last.object.metadata.resourceVersion !== metadata.resourceVersion)
      return false;
    return this.#clock.monotonic() - last.at < FRESH_MS;
  }

  /** The newest known object: the cached one, or our own last write until the cache has it. */
  latest<T extends KubeObject>(
    resource: Resource<T>,
    view: View<T>,
    name: string,
    namespace?: string,
  ): T | undefined {
    const seen = view.get(name, namespace);
    const own = this.#of(resource);
    // Fast path: usually no write is pending.
    if (own.size === 0) return seen;
    const key = keyAt(name, namespace);
    const { object, at = 0 } = own.get(key) ?? {};
    if (!object) return seen;
    const version = seen?.metadata.resourceVersion ?? view.resourceVersion();
    const { resourceVersion: wanted } = object.metadata;
    const isSeen =
      !wanted || (version !== undefined && compareResourceVersions(version, wanted) >= 0);
    if (isSeen || this.#clock.monotonic() - at > LAG_MS) {
      own.delete(key);
      return seen;
    }
    return object as T;
  }

  /** Names of the objects whose last own write the view has not shown yet. */
  unseen<T extends KubeObject>(resource: Resource<T>, view: View<T>): ReadonlySet<string> {
    const names = new Set<string>();
    for (const { object } of this.#of(resource).values()) {
      const { name, namespace } = object.metadata;
      if (this.latest(resource, view, name, namespace) !== view.get(name, namespace))
        names.add(name);
    }
    return names;
  }

  /** The list of the view itself while it lacks nothing. The same list while nothing changes. */
  latestOfAll<T extends KubeObject>(resource: Resource<T>, view: View<T>): readonly T[] {
    const listed = view.list();
    if (this.#of(resource).size === 0) return listed;
    const kind = kindOf(resource);
    const now = this.#clock.monotonic();
    const known = this.#corrected.get(kind);
    if (known?.listed === listed && now - known.at < FRESH_MS) return known.all as readonly T[];
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
    const isComplete = newer.size === 0 && added.length === 0;
    const all = isComplete
      ? listed
      : [...listed.map((object) => newer.get(object) ?? object), ...added];
    this.#corrected.set(kind, { listed, all, at: now });
    return all;
  }

  #of(resource: Resource): Map<string, OwnWrite> {
    return this.#written.getOrInsertComputed(kindOf(resource), () => new Map());
  }
}

export const kindOf = onceForEach((resource: Resource) => pathOf(resource));
