/** Stores the objects of an informer, and calls handlers for every change. */
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { untilAborted } from '../../util/waits.ts';
import { type KubeObject, keyAt, keyOf } from '../resources.ts';

/**
 * The store calls the handler in the order in which the server sends the changes. An object with one uid is added, then
 * updated, then deleted. An object with the same name and another uid is another object.
 */
export interface Handler<T extends KubeObject> {
  added?(object: T): void;
  updated?(object: T, previous: T): void;
  /** `object` is the last known state, which may be older than the state that was deleted. */
  deleted?(object: T): void;
}

type Change<T extends KubeObject> = (handler: Handler<T>) => void;

type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

export interface Store<T extends KubeObject> {
  /** Returns the version up to which the store is complete; undefined before the first list. */
  readonly resourceVersion: () => string | undefined;
  readonly get: (name: string, namespace?: string) => T | undefined;
  /** Returns the same array until something changes, so that callers can cache results for it. */
  readonly list: () => readonly T[];
  /**
   * Calls the handler with each stored object as `added`, then with each change. The returned function removes the
   * handler. Errors that the handler throws are logged.
   */
  readonly addHandler: (handler: Handler<T>) => () => void;
  /** Resolves when the store has its first complete list. It rejects if `abort` fires earlier. */
  readonly whenSynced: (abort?: AbortSignal) => Promise<void>;
  /** Records that no change older than `resourceVersion` will follow. */
  advance(resourceVersion: string): void;
  /**
   * Replaces everything with the state at `resourceVersion`. Objects that are not in `items` are
   * deleted.
   */
  replace(items: readonly T[], resourceVersion: string): void;
  /** Applies one event of a watch. */
  apply(type: ChangeType, object: T): void;
}

/** Returns an empty store. Errors of handlers go to `log`. */
export function createStore<T extends KubeObject>(log: Logger): Store<T> {
  const objects = new Map<string, T>();
  const handlers = new Set<Handler<T>>();
  const synced = Promise.withResolvers<void>();
  let version: string | undefined;
  let list: readonly T[] | undefined;
  /**
   * Calls the handler with the change. An error of the handler is only logged, because it must not end the watch, and the other handlers
   * must get the change.
   */
  const notify = (handler: Handler<T>, change: Change<T>): void => {
    try {
      change(handler);
    } catch (error) {
      log.error('a handler failed', { problem: messageOf(error) });
    }
  };
  const notifyAll = (change: Change<T>): void => {
    for (const handler of handlers) notify(handler, change);
  };
  const remove = (key: string, last: T): void => {
    list = undefined;
    objects.delete(key);
    notifyAll((handler) => handler.deleted?.(last));
  };
  const put = (object: T): void => {
    list = undefined;
    const key = keyOf(object);
    const known = objects.get(key);
    if (known && known.metadata.uid === object.metadata.uid) {
      if (known.metadata.resourceVersion === object.metadata.resourceVersion) return;
      objects.set(key, object);
      notifyAll((handler) => handler.updated?.(object, known));
      return;
    }
    if (known) remove(key, known);
    objects.set(key, object);
    notifyAll((handler) => handler.added?.(object));
  };
  const advance = (resourceVersion: string): void => {
    version = resourceVersion;
    synced.resolve();
  };
  return {
    advance,
    resourceVersion: () => version,
    get: (name, namespace) => objects.get(keyAt(name, namespace)),
    list: () => {
      list ??= [...objects.values()];
      return list;
    },
    addHandler: (handler) => {
      handlers.add(handler);
      for (const object of objects.values()) notify(handler, (each) => each.added?.(object));
      return () => handlers.delete(handler);
    },
    whenSynced: async (abort) => await untilAborted(synced.promise, abort),
    replace(items, resourceVersion) {
      const present = new Set(items.map(keyOf));
      for (const [key, object] of objects) if (!present.has(key)) remove(key, object);
      for (const item of items) put(item);
      advance(resourceVersion);
    },
    apply(type, object) {
      if (type !== 'DELETED') return put(object);
      const key = keyOf(object);
      const known = objects.get(key);
      if (known && known.metadata.uid === object.metadata.uid) remove(key, object);
    },
  };
}
