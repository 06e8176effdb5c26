/** A local copy of one collection that a watch keeps up to date, as in client-go. */
import { type Clock, sleep } from '../../util/clock.ts';
import { DEFAULT_TOOLS, type Tools } from '../../util/tools.ts';
import { untilAborted } from '../../util/waits.ts';
import type { KubeClient, Selection } from '../client.ts';
import type { KubeObject, Resource } from '../resources.ts';
import { withoutManagedFields } from '../trimmed.ts';
import { reflect } from './reflector.ts';
import { createStore, type Handler } from './store.ts';

export interface InformerOptions<T extends KubeObject> extends Selection, Partial<Tools> {
  /** `streamed` by default: one request instead of two; `paged` is sooner there. */
  readonly firstList?: 'streamed' | 'paged';
  /** Makes objects smaller before they are stored; `metadata.managedFields` is always dropped. */
  readonly transform?: ((object: T) => T) | undefined;
}

/** Returns the stored objects themselves: never change them. */
export interface Informer<T extends KubeObject = KubeObject> {
  readonly resource: Resource<T>;
  get(name: string, namespace?: string): T | undefined;
  list(): readonly T[];
  /** Replays the stored objects as `added`; the returned function removes the handler. Errors of a handler are logged. */
  addHandler(handler: Handler<T>): () => void;
  synced(): boolean;
  whenSynced(abort?: AbortSignal): Promise<void>;
  /** The copy holds everything up to this version; undefined before the first list. Compare with compareResourceVersions. */
  resourceVersion(): string | undefined;
  /** Follows the collection until `abort`; never rejects. Call once. */
  run(abort: AbortSignal): Promise<void>;
}

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

/** Reads nothing, and looks empty, until `isDue`, which is asked every `everyMs` milliseconds. Nobody waits for it after the first answer. */
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
