/** The stored objects by key, one revision counter for all of them, and the history of each collection. */
import type { ObjectMeta } from '../../src/kube/resources.ts';

/** Metadata as the server keeps it, including the fields that only servers write. */
export interface Metadata extends ObjectMeta {
  generateName?: string;
  deletionGracePeriodSeconds?: number;
  managedFields?: ManagedFields[];
}

/** The fields of one manager: see ownership.ts. */
export interface ManagedFields {
  manager: string;
  operation: 'Apply' | 'Update';
  apiVersion: string;
  time?: string;
  fieldsType: 'FieldsV1';
  fieldsV1: Record<string, unknown>;
  subresource?: string;
}

/** Any object, as far as the server knows it. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  [member: string]: unknown;
}

/** One state of one object. It is never changed after it was stored, because handlers work on clones. */
export class Version {
  readonly key: string;
  readonly revision: number;
  readonly object: ApiObject;
  #members: string | undefined;

  constructor(key: string, revision: number, object: ApiObject) {
    this.key = key;
    this.revision = revision;
    this.object = object;
  }

  /** Returns the same state with another revision. Watchers get it when the object is removed. */
  under(revision: number): Version {
    const metadata = { ...this.object.metadata, resourceVersion: String(revision) };
    return new Version(this.key, revision, { ...this.object, metadata });
  }

  /**
   * The JSON of all members except `apiVersion` and `kind`. Lists of built-in kinds omit these two from their items.
   * The text is made only once.
   */
  get members(): string {
    const { apiVersion: _apiVersion, kind: _kind, ...rest } = this.object;
    this.#members ??= JSON.stringify(rest);
    return this.#members;
  }

  get text(): string {
    const { apiVersion, kind } = this.object;
    return `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},${this.members.slice(1)}`;
  }
}

/** A change of one object. */
export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly version: Version;
  /** The state before the change; absent for ADDED. */
  readonly before?: Version;
}

/** Counts revisions for all collections, as etcd does. The history up to the revision `compacted` is deleted. */
export class Revisions {
  current = 1;
  compacted = 0;
  /** The minimum number of changes that each collection keeps. */
  readonly history: number;

  constructor(history: number) {
    this.history = history;
  }

  compact(): void {
    this.compacted = this.current;
  }
}

const byKey = (a: Version, b: Version): number => (a.key < b.key ? -1 : 1);

type Listener = (change: Change) => void;

/** The objects of one resource. */
export class Collection {
  readonly listeners = new Set<Listener>();
  /**
   * The listeners of single objects, by key. There may be thousands, and they must not make the change of another
   * object slower.
   */
  readonly #followers = new Map<string, Set<Listener>>();
  readonly #revisions: Revisions;
  readonly #live = new Map<string, Version>();
  #log: Change[] = [];
  #forgotten = 0;
  #snapshot: { revision: number; versions: readonly Version[] } | undefined;

  constructor(revisions: Revisions) {
    this.#revisions = revisions;
    this.#forgotten = revisions.current;
  }

  get(key: string): Version | undefined {
    return this.#live.get(key);
  }

  get size(): number {
    return this.#live.size;
  }

  /**
   * Calls the listener for each change of the object with this key, or of every object if there is no key. It stops
   * when the returned function is called.
   */
  listen(listener: Listener, key?: string): () => void {
    const group = key === undefined ? this.listeners : (this.#followers.get(key) ?? new Set());
    if (key !== undefined) this.#followers.set(key, group);
    group.add(listener);
    return () => {
      group.delete(listener);
      if (key !== undefined && group.size === 0) this.#followers.delete(key);
    };
  }

  values(): Iterable<Version> {
    return this.#live.values();
  }

  /** Stores `object` under a new revision. The caller must not use `object` any more. */
  put(key: string, object: ApiObject): Version {
    const before = this.#live.get(key);
    const revision = ++this.#revisions.current;
    object.metadata.resourceVersion = String(revision);
    const version = new Version(key, revision, object);
    this.#live.set(key, version);
    this.#record({
      type: before ? 'MODIFIED' : 'ADDED',
      revision: version.revision,
      version,
      ...(before && { before }),
    });
    return version;
  }

  /** Replaces every object by the result of `read`, without a new revision or an event. */
  reread(read: (object: ApiObject) => ApiObject): void {
    for (const { key, revision, object } of this.#live.values()) {
      this.#live.set(key, new Version(key, revision, read(object)));
    }
    this.#snapshot = undefined;
  }

  /** Removes the object. Watches receive its last state, with the revision of the removal. */
  remove(before: Version): void {
    const version = before.under(++this.#revisions.current);
    this.#live.delete(before.key);
    this.#record({ type: 'DELETED', revision: version.revision, version, before });
  }

  /** Reports whether all changes after `revision` are still known. */
  remembers(revision: number): boolean {
    return revision >= Math.max(this.#forgotten, this.#revisions.compacted);
  }

  /** Changes after `revision`, oldest first. */
  since(revision: number): readonly Change[] {
    const log = this.#log;
    let low = 0;
    let high = log.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((log[middle]?.revision ?? 0) > revision) high = middle;
      else low = middle + 1;
    }
    return log.slice(low);
  }

  /** All objects as they were at `revision`, in the order of their keys. The pages of one list share the result. */
  at(revision: number): readonly Version[] {
    const last = this.#log.at(-1)?.revision ?? 0;
    const wanted = Math.min(revision, Math.max(last, this.#forgotten));
    if (this.#snapshot?.revision === wanted) return this.#snapshot.versions;
    const state = new Map(this.#live);
    for (const { version, before } of this.since(wanted).toReversed()) {
      if (before) state.set(version.key, before);
      else state.delete(version.key);
    }
    this.#snapshot = { revision: wanted, versions: [...state.values()].sort(byKey) };
    return this.#snapshot.versions;
  }

  #record(change: Change): void {
    this.#log.push(change);
    if (this.#log.length >= 2 * this.#revisions.history) {
      const dropped = this.#log.length - this.#revisions.history;
      this.#forgotten = this.#log[dropped - 1]?.revision ?? this.#forgotten;
      this.#log = this.#log.slice(dropped);
    }
    for (const listener of this.listeners) listener(change);
    for (const listener of this.#followers.get(change.version.key) ?? []) listener(change);
  }
}

/** Returns the key of an object. Lists are in the order of the keys: by namespace, then by name, as in etcd. */
export const keyOf = (namespace: string | undefined, name: string): string =>
  namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
