/** A local copy of single objects, each with a watch of its own: RBAC can name them, which it cannot for a collection. */
import { sleep, systemClock } from '../../util/clock.ts';
import { aborted } from '../../util/waits.ts';
import type { KubeClient } from '../client.ts';
import type { KubeObject, Resource } from '../resources.ts';
import { createInformer, type Informer, type InformerOptions } from './informer.ts';
import type { Handler } from './store.ts';

export interface NamedInformerOptions<T extends KubeObject, O extends KubeObject>
  extends Omit<InformerOptions<T>, 'fieldSelector' | 'labelSelector'> {
  /** Its objects name those to follow. */
  readonly owners: Informer<O>;
  readonly namesIn: (owner: O) => readonly string[];
}

interface Member<T extends KubeObject> {
  readonly informer: Informer<T>;
  readonly stop: AbortController;
  readonly running: Promise<void>;
  /** Settles once the object was read, found missing, or not readable in time: no right to one must not stop the others. */
  readonly tried: Promise<void>;
}

const READ_WITHIN_MS = 5_000;

export function createNamedInformer<T extends KubeObject, O extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  { owners, namesIn, ...options }: NamedInformerOptions<T, O>,
): Informer<T> {
  const { clock = systemClock } = options;
  const members = new Map<string, Member<T>>();
  /** With what removes each from its members. */
  const handlers = new Map<Handler<T>, (() => void)[]>();
  let running: AbortSignal | undefined;
  let isSynced = false;

  const follow = (name: string, abort: AbortSignal): Member<T> => {
    const informer = createInformer(client, resource, { ...options, fieldSelector: `metadata.name=${name}` });
    for (const [handler, removals] of handlers) removals.push(informer.addHandler(handler));
    const stop = new AbortController();
    const until = AbortSignal.any([abort, stop.signal]);
    const ended = informer.run(until);
    const tried = Promise.race([informer.whenSynced(until), sleep(clock, READ_WITHIN_MS, until)]);
    return { informer, stop, running: ended, tried: tried.catch(() => undefined) };
  };
  const update = (): void => {
    if (running === undefined || running.aborted) return;
    const wanted = new Set(owners.list().flatMap((owner) => namesIn(owner)));
    for (const [name, { stop, informer }] of members) {
      if (wanted.has(name)) continue;
      stop.abort();
      members.delete(name);
      for (const gone of informer.list()) for (const handler of handlers.keys()) handler.deleted?.(gone);
    }
    for (const name of wanted) if (!members.has(name)) members.set(name, follow(name, running));
  };

  return {
    resource,
    get: (name, namespace) => members.get(name)?.informer.get(name, namespace),
    list: () => [...members.values()].flatMap(({ informer }) => informer.list()),
    addHandler: (handler) => {
      const removals = [...members.values()].map(({ informer }) => informer.addHandler(handler));
      handlers.set(handler, removals);
      return () => {
        handlers.delete(handler);
        for (const remove of removals) remove();
      };
    },
    synced: () => isSynced,
    whenSynced: async (abort) => {
      await owners.whenSynced(abort);
      update();
      await Promise.all([...members.values()].map(async ({ tried }) => await tried));
      isSynced = true;
    },
    // Each member has its own; nobody writes what is followed here.
    resourceVersion: () => undefined,
    run: async (abort) => {
      running = abort;
      const unsubscribe = owners.addHandler({ added: update, updated: update, deleted: update });
      await aborted(abort);
      unsubscribe();
      await Promise.all([...members.values()].map(async (member) => await member.running));
    },
  };
}
