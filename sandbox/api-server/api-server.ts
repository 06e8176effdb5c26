/** The in-memory API server: the function that starts it, and the functions that tests may call. */
import { randomUUID } from 'node:crypto';
import type { Caller } from '../../src/kube/client.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { answer, type RequestRecord } from './answer.ts';
import { Cluster } from './cluster.ts';
import { keepBudgets } from './kinds/disruption.ts';
import { listen } from './listener.ts';
import { localCaller } from './local-caller.ts';
import { type ApiObject, Revisions } from './store.ts';
import { WatchHub } from './watch.ts';
import { runLifecycles } from './writes/lifecycle.ts';

export type { RequestRecord };

export interface ApiServerOptions {
  readonly clock?: Clock;
  /** The loopback addresses at which the server listens, all on the port of the first address; 127.0.0.1 if absent. */
  readonly addresses?: readonly string[];
  /** Milliseconds between bookmarks on a watch; one minute if absent, as in kube-apiserver. */
  readonly bookmarkIntervalMs?: number;
  /** The number of changes that each collection keeps for watches and for pages of old lists. */
  readonly eventHistory?: number;
  /** Returns the uid for a new object, so that a run can be repeated exactly. If absent, uids are random. */
  readonly newUid?: () => string;
  /** Called for each request when the server answers it. For a watch, called when the watch begins. */
  readonly onRequest?: (record: RequestRecord) => void;
}

/** A running server. */
export interface ApiServer {
  /** The URL of the first address, without a slash at the end. */
  readonly url: string;
  readonly urls: readonly string[];
  /** The caller for clients in this process. Such clients need no sockets, so there can be thousands of them. */
  readonly caller: Caller;
  /** Forgets all history: a request for an older resourceVersion gets 410. */
  compact(): void;
  /** Returns the stored objects of a resource, in the order of their names. Tests must not change them. */
  objects(group: string, plural: string): readonly ApiObject[];
  stop(): Promise<void>;
}

/** Namespaces that every cluster has. */
const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/**
 * Starts an API server that knows no users and allows every request. Rejects if it finds no port that is free on all
 * addresses.
 */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const {
    clock = systemClock,
    addresses = ['127.0.0.1'],
    eventHistory = 10_000,
    bookmarkIntervalMs = 60_000,
    newUid = () => randomUUID(),
  } = options;
  const revisions = new Revisions(eventHistory);
  const cluster = new Cluster(clock, revisions, newUid);
  const hub = new WatchHub(cluster, bookmarkIntervalMs);
  seedNamespaces(cluster);
  keepBudgets(cluster);
  runLifecycles(cluster, (resource) => hub.close(resource));
  const service = { cluster, hub, onRequest: options.onRequest };
  const listening = await listen(addresses, (incoming, response) => {
    void answer(service, incoming, response);
  });
  return {
    url: listening.urls[0] ?? '',
    urls: listening.urls,
    caller: localCaller(service),
    compact: () => revisions.compact(),
    objects: (group, plural) => {
      const { collection } = cluster.resource(group, plural);
      return collection.at(revisions.current).map(({ object }) => object);
    },
    stop: async () => await listening.close(),
  };
}

function seedNamespaces(cluster: Cluster): void {
  const { kind, collection } = cluster.resource('', 'namespaces');
  for (const name of NAMESPACES) {
    const object = kind.read({ metadata: { name } }, []);
    object.metadata.uid = cluster.newUid();
    object.metadata.creationTimestamp = cluster.timestamp();
    kind.prepare(object, undefined);
    collection.put(name, object);
  }
}
