/**
 * Keeps a local copy of single objects, each with its own watch. RBAC can allow single names for a
 * watch, but not for a list of a whole collection.
 */
import { sleep } from '../../util/clock.ts';
import { DEFAULT_TOOLS } from '../../util/tools.ts';
import { aborted } from '../../util/waits.ts';
import type { KubeClient } from '../client.ts';
import type { KubeObject, Resource } from '../resources.ts';
import { createInformer, type Informer, type InformerOptions } from './informer.ts';
import { createStore } from './store.ts';

export interface NamedInformerOptions<T extends KubeObject, O extends KubeObject>
  extends Omit<InformerOptions<T>, 'fieldSelector' | 'labelSelector'> {
  /** The informer of the owners. Each owner names objects to follow. */
  readonly owners: Informer<O>;
  readonly namesIn: (owner: O) => readonly string[];
}

/**
 * Milliseconds that the first read of one object may take. If Refit has no right to read one object, this limit
 * prevents the other objects from waiting for that read.
 */
const READ_WITHIN_MS = 5_000;

/** One object that the informer follows by its name. */
interface Member {
  /** Settles when the object is no longer followed. */
  readonly ended: Promise<void>;
  /**
   * Settles when the first read of the object has ended: the object was found, it is missing, or
   * the time is over.
   */
  readonly tried: Promise<void>;
  /** Stops following the object, and deletes it from the store. */
  stop(): void;
}

/**
 * Returns an informer of the objects that the `owners` name at the moment. The set of objects changes with the owners.
 */
export function createNamedInformer<T extends KubeObject, O extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  { owners, namesIn, ...options }: NamedInformerOptions<T, O>,
): Informer<T> {
  const { clock, log } = { ...DEFAULT_TOOLS, ...options };
  const store = createStore<T>(log);
  const members = new Map<string, Member>();
  let running: AbortSignal | undefined;
  let isSynced = false;

  const follow = (name: string, abort: AbortSignal): Member => {
    const informer = createInformer(client, resource, {
      ...options,
      fieldSelector: `metadata.name=${name}`,
    });
    const ending = new AbortController();
    const until = AbortSignal.any([abort, ending.signal]);
    const stopForwarding = informer.addHandler({
      added: (object) => store.apply('ADDED', object),
      updated: (object) => store.apply('MODIFIED', object),
      deleted: (object) => store.apply('DELETED', object),
    });
    const tried = Promise.race([informer.whenSynced(until), sleep(clock, READ_WITHIN_MS, until)]);
    return {
      ended: informer.run(until),
      tried: tried.catch(() => undefined),
      stop() {
        ending.abort();
        stopForwarding();
        for (const gone of informer.list()) store.apply('DELETED', gone);
      },
    };
  };
  const update = (): void => {
    if (running === undefined || running.aborted) return;
    const wanted = new Set(owners.list().flatMap((owner) => namesIn(owner)));
    for (const [name, member] of members) {
      if (wanted.has(name)) continue;
      members.delete(name);
      member.stop();
    }
    for (const name of wanted) if (!members.has(name)) members.set(name, follow(name, running));
  };

  return {
    resource,
    get: store.get,
    list: store.list,
    addHandler: store.addHandler,
    synced: () => isSynced,
    whenSynced: async (abort) => {
      await owners.whenSynced(abort);
      update();
      await Promise.all([...members.values()].map(async ({ tried }) => await tried));
      isSynced = true;
    },
    // The whole copy has no version, because each member has its own version. No caller needs a version of the copy,
    // because Refit does not write these objects.
    resourceVersion: () => undefined,
    run: async (abort) => {
      running = abort;
      const unsubscribe = owners.addHandler({ added: update, updated: update, deleted: update });
      await aborted(abort);
      unsubscribe();
      await Promise.all([...members.values()].map(async ({ ended }) => await ended));
    },
  };
}
