/** The controller's World: the caches of informers, together with this process's own writes that the caches may still lack. */
import {
  compareResourceVersions,
  type KubeObject,
  keyAt,
  keyOf,
  pathOf,
  type Resource,
} from '../../kube/resources.ts';
import type { Informer } from '../../kube/watch/informer.ts';
import { type MonotonicClock, systemClock } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import type { World } from '../contract/world.ts';

export type Views = <T extends KubeObject>(resource: Resource<T>) => View<T>;

/**
 * Returns a function that finds the view of a kind. That function throws for a kind that is not
 * watched.
 */
export function viewsOf(entries: Iterable<readonly [Resource, View<KubeObject>]>): Views {
  const views = new Map([...entries].map(([resource, view]) => [kindOf(resource), view]));
  return <T extends KubeObject>(resource: Resource<T>) => {
    const view = views.get(kindOf(resource)) as View<T> | undefined;
    // A part of a kind is watched only by the processes that need it. For all others it has no objects.
    if (!view && resource.part !== undefined) return NOTHING as View<T>;
    if (!view) throw new Error(`${resource.plural} are not watched`);
    return view;
  };
}

/** Returns a world of these views. The writes of this process are visible in this world immediately. */
export function freshWorld(views: Views, ownWrites: OwnWrites): World {
  return {
    get: (resource, name, namespace) =>
      ownWrites.latest(resource, views(resource), name, namespace),
    list: (resource) => ownWrites.latestOfAll(resource, views(resource)),
    outdated: (resource) => ownWrites.unseen(resource, views(resource)),
  };
}

/** The cache of one kind that an informer keeps. It lags behind the API server. */
export type View<T extends KubeObject> = Pick<Informer<T>, 'get' | 'list' | 'resourceVersion'>;

/** The view of a kind that cannot be read. It is always empty. */
export const NOTHING: View<KubeObject> = {
  list: () => [],
  get: () => undefined,
  resourceVersion: () => undefined,
};

/**
 * A write of this process counts for at most this many milliseconds, because a watch delivers the write sooner. The
 * limit is needed because a cluster that was restored from a backup has lower resourceVersions.
 */
const LAG_MS = 60_000;

interface OwnWrite {
  readonly object: KubeObject;
  /** The time of the write in milliseconds of the monotonic clock. */
  readonly at: number;
}

/**
 * The milliseconds for which the response to a write of this process replaces a read. For the same time, a list that
 * contains such writes is not computed again.
 */
const FRESH_MS = 1_000;

/** A list of a view, and the same list with this process's own writes in it. */
type Corrected = Pick<OwnWrite, 'at'> & Readonly<Record<'listed' | 'all', readonly KubeObject[]>>;

export class OwnWrites {
  readonly #clock: MonotonicClock;
  /** The own writes by kind, then by namespace and name. */
  readonly #written = new Map<string, Map<string, OwnWrite>>();
  /** The corrected lists by kind. Each list is kept, so that values computed from a list are computed once. */
  readonly #corrected = new Map<string, Corrected>();
  #last: OwnWrite | undefined;

  constructor(clock: MonotonicClock = systemClock) {
    this.#clock = clock;
  }

  /** Remembers an own write. It must be called with the server's answer to every write. */
  remember(resource: Resource, object: KubeObject): void {
    this.#last = { object, at: this.#clock.monotonic() };
    this.#of(resource).set(keyOf(object), this.#last);
    this.#corrected.delete(kindOf(resource));
  }

  /**
   * Returns true if this version of the object is the result of our own last write, and the API server answered that write less than
   * FRESH_MS ago.
   */
  isFresh({ metadata }: KubeObject): boolean {
    const last = this.#last;
    if (last === undefined || last.object.metadata.resourceVersion !== metadata.resourceVersion)
      return false;
    return this.#clock.monotonic() - last.at < FRESH_MS;
  }

  /**
   * Returns the newest known object. This is the last write of this process until the cache contains this write, and
   * then the cached object.
   */
  latest<T extends KubeObject>(
    resource: Resource<T>,
    view: View<T>,
    name: string,
    namespace?: string,
  ): T | undefined {
    const seen = view.get(name, namespace);
    const own = this.#of(resource);
    // This is the fast path, because usually no write is pending.
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

  /** Returns the names of the objects whose last write by this process is not in the view yet. */
  unseen<T extends KubeObject>(resource: Resource<T>, view: View<T>): ReadonlySet<string> {
    const names = new Set<string>();
    for (const { object } of this.#of(resource).values()) {
      const { name, namespace } = object.metadata;
      if (this.latest(resource, view, name, namespace) !== view.get(name, namespace))
        names.add(name);
    }
    return names;
  }

  /**
   * Returns the list updated with the writes of this process. Returns the list of the view itself if it contains all
   * these writes. Returns the same list while nothing changes.
   */
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

/** Returns a text that is the same for all descriptions of one kind, or of one part of it, for use as a key. */
export const kindOf = onceForEach(
  (resource: Resource) =>
    `${pathOf(resource)}${resource.part === undefined ? '' : `#${resource.part}`}`,
);
