/** Keeps a local copy of one collection up to date with a watch, like an informer of client-go. */
import { type Clock, sleep } from '../../util/clock.ts';
import { DEFAULT_TOOLS, type Tools } from '../../util/tools.ts';
import { untilAborted } from '../../util/waits.ts';
import type { KubeClient, Selection } from '../client.ts';
import type { KubeObject, Resource } from '../resources.ts';
import { withoutManagedFields } from '../trimmed.ts';
import { reflect } from './reflector.ts';
import { createStore, type Handler } from './store.ts';

export interface InformerOptions<T extends KubeObject> extends Selection, Partial<Tools> {
  /**
   * How the first list is read. `streamed`, the default, needs one request instead of two. `paged`
   * is complete sooner.
   */
  readonly firstList?: 'streamed' | 'paged';
  /** Makes objects smaller before they are stored. `metadata.managedFields` is always dropped. */
  readonly transform?: ((object: T) => T) | undefined;
}

/**
 * A local copy of one collection. It returns the stored objects themselves, which callers must
 * never change.
 */
export interface Informer<T extends KubeObject = KubeObject> {
  readonly resource: Resource<T>;
  get(name: string, namespace?: string): T | undefined;
  list(): readonly T[];
  /**
   * Calls the handler with each stored object as `added`, then with each change. The returned function removes the
   * handler. Errors that the handler throws are logged.
   */
  addHandler(handler: Handler<T>): () => void;
  synced(): boolean;
  /** Resolves when the first list is stored. It rejects if `abort` fires earlier. */
  whenSynced(abort?: AbortSignal): Promise<void>;
  /**
   * Returns the version up to which the copy is complete; undefined before the first list. Compare
   * it with compareResourceVersions.
   */
  resourceVersion(): string | undefined;
  /** Follows the collection until `abort`, and never rejects. It must be called once. */
  run(abort: AbortSignal): Promise<void>;
}

/** Returns an informer, which sends no request before `run`. */
export function createInformer<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  options: InformerOptions<T> = {},
): Informer<T> {
  const { transform: shrink = (object: T) => object, firstList = 'streamed', ...given } = options;
  const own = { ...DEFAULT_TOOLS, ...given };
  const log = own.log.child({ resource: resource.plural });
  const store = createStore<T>(log);
  const transform = (object: T): T => shrink(withoutManagedFields(object));
  return {
    resource,
    get: store.get,
    list: store.list,
    addHandler: store.addHandler,
    synced: () => store.resourceVersion() !== undefined,
    whenSynced: store.whenSynced,
    resourceVersion: store.resourceVersion,
    run: async (abort) =>
      await reflect(client, resource, { ...own, firstList, transform, log }, store, abort),
  };
}

/**
 * Returns an informer that is empty and sends no request until `isDue` returns true. It calls
 * `isDue` every `everyMs` milliseconds. If the first result is false, the informer counts as
 * synced.
 */
export function lateInformer<T extends KubeObject>(
  informer: Informer<T>,
  {
    isDue,
    everyMs,
    clock,
  }: { isDue: (abort: AbortSignal) => Promise<boolean>; everyMs: number; clock: Clock },
): Informer<T> {
  const looked = Promise.withResolvers<void>();
  let isLate = false;
  const run = async (abort: AbortSignal): Promise<void> => {
    while (!abort.aborted && !(await isDue(abort).catch(() => false))) {
      isLate = true;
      looked.resolve();
      await sleep(clock, everyMs, abort).catch(() => undefined);
    }
    looked.resolve();
    await informer.run(abort);
  };
  const whenSynced = async (abort?: AbortSignal): Promise<void> => {
    await untilAborted(looked.promise, abort);
    if (!isLate) await informer.whenSynced(abort);
  };
  return { ...informer, synced: () => isLate || informer.synced(), whenSynced, run };
}
