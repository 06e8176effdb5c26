/** Owns the objects an informer knows, their indexes, and telling handlers what changed. */
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import { keyOf } from '../object-key.ts';
import type { KubeObject } from '../types.ts';
import type { Handler } from './handler.ts';
import type { Sink } from './reflector.ts';

type IndexFunction<T> = (object: T) => readonly string[];
type Change<T extends KubeObject> = (handler: Handler<T>) => void;

export class Store<T extends KubeObject> implements Sink<T> {
  readonly #objects = new Map<string, T>();
  readonly #functions: ReadonlyMap<string, IndexFunction<T>>;
  /** index → value → keys. */
  readonly #indexes = new Map<string, Map<string, Set<string>>>();
  readonly #handlers = new Set<Handler<T>>();
  readonly #waiting = new Set<() => void>();
  readonly #logger: Logger;
  #resourceVersion: string | undefined;

  constructor(indexes: Readonly<Record<string, IndexFunction<T>>>, logger: Logger) {
    this.#functions = new Map(Object.entries(indexes));
    for (const name of this.#functions.keys()) this.#indexes.set(name, new Map());
    this.#logger = logger;
  }

  get resourceVersion(): string | undefined {
    return this.#resourceVersion;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  byIndex(index: string, value: string): T[] {
    const values = this.#indexes.get(index);
    if (!values) throw new Error(`there is no index "${index}"`);
    const keys = [...(values.get(value) ?? [])];
    return keys.map((key) => this.#objects.get(key)).filter((object) => object !== undefined);
  }

  addHandler(handler: Handler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.#objects.values()) this.#tell(handler, (each) => each.added?.(object));
    return () => this.#handlers.delete(handler);
  }

  async whenSynced(abort?: AbortSignal): Promise<void> {
    abort?.throwIfAborted();
    if (this.#resourceVersion !== undefined) return;
    await new Promise<void>((resolve, reject) => {
      const onSynced = (): void => {
        abort?.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiting.delete(onSynced);
        reject(abort?.reason instanceof Error ? abort.reason : new Error('aborted'));
      };
      abort?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(onSynced);
    });
  }

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

  advance(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
    for (const onSynced of this.#waiting) onSynced();
    this.#waiting.clear();
  }

  #put(object: T): void {
    const key = keyOf(object);
    const known = this.#objects.get(key);
    if (known && known.metadata.uid === object.metadata.uid) {
      if (known.metadata.resourceVersion === object.metadata.resourceVersion) return;
      this.#store(key, object, known);
      this.#tellAll((handler) => handler.updated?.(object, known));
      return;
    }
    if (known) this.#remove(key, known);
    this.#store(key, object, undefined);
    this.#tellAll((handler) => handler.added?.(object));
  }

  #store(key: string, object: T, known: T | undefined): void {
    this.#reindex(key, known, object);
    this.#objects.set(key, object);
  }

  #remove(key: string, last: T): void {
    this.#reindex(key, this.#objects.get(key), undefined);
    this.#objects.delete(key);
    this.#tellAll((handler) => handler.deleted?.(last));
  }

  #reindex(key: string, before: T | undefined, after: T | undefined): void {
    for (const [name, values] of this.#indexes) {
      for (const value of this.#valuesOf(name, before)) {
        values.get(value)?.delete(key);
        if (values.get(value)?.size === 0) values.delete(value);
      }
      for (const value of this.#valuesOf(name, after)) values.set(value, (values.get(value) ?? new Set()).add(key));
    }
  }

  #valuesOf(index: string, object: T | undefined): readonly string[] {
    try {
      return object ? (this.#functions.get(index)?.(object) ?? []) : [];
    } catch (error) {
      this.#logger.error('an index function failed', { index, problem: messageOf(error) });
      return [];
    }
  }

  #tellAll(change: Change<T>): void {
    for (const handler of this.#handlers) this.#tell(handler, change);
  }

  /** One handler's fault must neither end the watch nor keep the news from the others. */
  #tell(handler: Handler<T>, change: Change<T>): void {
    try {
      change(handler);
    } catch (error) {
      this.#logger.error('a handler failed', { problem: messageOf(error) });
    }
  }
}
