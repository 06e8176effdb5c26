/** Owns the local view of one collection: a store that is followed by watch, with indexes and handlers. */
import { type Clock, systemClock } from '../../util/clock.ts';
import { type Logger, silentLogger } from '../../util/log.ts';
import type { KubeClient } from '../client.ts';
import { keyOf } from '../object-key.ts';
import type { Resource } from '../resources.ts';
import type { KubeObject } from '../types.ts';
import type { Handler } from './handler.ts';
import { Reflector, type Selection } from './reflector.ts';
import { Store } from './store.ts';

export interface InformerOptions<T extends KubeObject> extends Selection {
  /** Named functions from an object to the values it is found under with `byIndex`. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
  /** Makes objects smaller before they are stored; `metadata.managedFields` are dropped anyway. */
  readonly transform?: ((object: T) => T) | undefined;
  /** Milliseconds that no pause exceeds while the server does not answer; 30 s where absent. */
  readonly retryCapMs?: number;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly logger?: Logger;
}

/** Objects handed out are the stored ones: read them, never change them. */
export interface Informer<T extends KubeObject = KubeObject> {
  readonly resource: Resource<T>;
  get(name: string, namespace?: string): T | undefined;
  /** In no particular order. */
  list(): T[];
  /** Objects whose index function gave `value`; throws where there is no such index. */
  byIndex(index: string, value: string): T[];
  /** Replays what is stored as `added`; the returned function takes the handler away. What a handler throws is logged. */
  addHandler(handler: Handler<T>): () => void;
  /** True once the first complete list is in the store. */
  synced(): boolean;
  /** Rejects with the signal's reason where that aborts first. */
  whenSynced(abort?: AbortSignal): Promise<void>;
  /** The view holds everything up to here; undefined before the first list. Compare with compareResourceVersions. */
  resourceVersion(): string | undefined;
  /** Follows until `signal` aborts; never rejects. Call once. */
  run(abort: AbortSignal): Promise<void>;
}

export function createInformer<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  options: InformerOptions<T> = {},
): Informer<T> {
  const logger = (options.logger ?? silentLogger).child({ resource: resource.plural });
  const store = new Store<T>(options.indexes ?? {}, logger);
  const { namespace, labelSelector, fieldSelector, retryCapMs, clock = systemClock, random = Math.random } = options;
  const shrink = options.transform ?? ((object: T) => object);
  const transform = (object: T): T => shrink(dropManagedFields(object));
  const selection = { namespace, labelSelector, fieldSelector };
  const parts = { client, resource, selection, sink: store, transform, retryCapMs, clock, random, logger };
  const reflector = new Reflector<T>(parts);
  return {
    resource,
    get: (name, namespace) => store.get(keyOf({ metadata: { name, ...(namespace ? { namespace } : {}) } })),
    list: () => store.list(),
    byIndex: (index, value) => store.byIndex(index, value),
    addHandler: (handler) => store.addHandler(handler),
    synced: () => store.resourceVersion !== undefined,
    whenSynced: async (abort) => await store.whenSynced(abort),
    resourceVersion: () => store.resourceVersion,
    run: async (abort) => await reflector.run(abort),
  };
}

function dropManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
  return { ...object, metadata };
}
