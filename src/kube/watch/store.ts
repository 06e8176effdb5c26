/** The objects of an informer, and the handlers that hear of every change. */
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { untilAborted } from '../../util/waits.ts';
import { type KubeObject, keyOf } from '../resources.ts';

/** In the server's order. For each uid: added, then updates, then deleted; another uid under a name is another object. */
export interface Handler<T extends KubeObject> {
  added?(object: T): void;
  updated?(object: T, previous: T): void;
  /** `object` is the last known state, which may be older than the deleted one. */
  deleted?(object: T): void;
}

type Change<T extends KubeObject> = (handler: Handler<T>) => void;

export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #handlers = new Set<Handler<T>>();
  readonly #synced = Promise.withResolvers<void>();
  readonly #log: Logger;
  #resourceVersion: string | undefined;
  #list: readonly T[] | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  get resourceVersion(): string | undefined {
    return this.#resourceVersion;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** The same array until something changes: what depends on all objects is computed once for it. */
  list(): readonly T[] {
    this.#list ??= [...this.#objects.values()];
    return this.#list;
  }

  addHandler(handler: Handler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.#objects.values()) this.#notify(handler, (each) => each.added?.(object));
    return () => this.#handlers.delete(handler);
  }

  async whenSynced(abort?: AbortSignal): Promise<void> {
    await untilAborted(this.#synced.promise, abort);
  }

  /** Everything at `resourceVersion`: objects that are not in it are gone. */
  replace(items: readonly T[], resourceVersion: string): void {
    const present = new Set(items.map(keyOf));
    for (const [key, object] of this.#objects) if (!present.has(key)) this.#remove(key, object);
    for (const item of items) this.#put(item);
    this.advance(resourceVersion);
  }

  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void {
    if (type !== 'DELETED') return this.#put(object);
    const key = keyOf(object);
    const known = this.#objects.get(key);
    if (known && known.metadata.uid === object.metadata.uid) this.#remove(key, object);
  }

  /** Nothing older than `resourceVersion` follows. */
  advance(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
    this.#synced.resolve();
  }

  #put(object: T): void {
    this.#list = undefined;
    const key = keyOf(object);
    const known = this.#objects.get(key);
    if (known && known.metadata.uid === object.metadata.uid) {
      if (known.metadata.resourceVersion === object.metadata.resourceVersion) return;
      this.#objects.set(key, object);
      this.#notifyAll((handler) => handler.updated?.(object, known));
      return;
    }
    if (known) this.#remove(key, known);
    this.#objects.set(key, object);
    this.#notifyAll((handler) => handler.added?.(object));
  }

  #remove(key: string, last: T): void {
    this.#list = undefined;
    this.#objects.delete(key);
    this.#notifyAll((handler) => handler.deleted?.(last));
  }

  #notifyAll(change: Change<T>): void {
    for (const handler of this.#handlers) this.#notify(handler, change);
  }

  /** A handler that throws must not end the watch, nor keep other handlers from hearing of the change. */
  #notify(handler: Handler<T>, change: Change<T>): void {
    try {
      change(handler);
    } catch (error) {
      this.#log.error('a handler failed', { problem: messageOf(error) });
    }
  }
}
