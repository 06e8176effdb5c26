/** The in-memory API server: the public way to start one, and what tests may ask of it. */
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
  /** Loopback addresses, all on the port that the first one got; 127.0.0.1 where absent. */
  readonly addresses?: readonly string[];
  /** Milliseconds between bookmarks on a watch; one minute where absent, as in kube-apiserver. */
  readonly bookmarkIntervalMs?: number;
  /** Changes that each collection keeps for watches and for pages of old lists. */
  readonly eventHistory?: number;
  /** Gives each new object its uid, for runs that repeat exactly; random where absent. */
  readonly newUid?: () => string;
  /** Called for each request when it is answered; of a watch, when it begins. */
  readonly onRequest?: (record: RequestRecord) => void;
}

/** A running server. */
export interface ApiServer {
  /** Of the first address, without a slash at the end. */
  readonly url: string;
  readonly urls: readonly string[];
  /** For clients in this process, which need no sockets: there may be thousands. */
  readonly caller: Caller;
  /** Forgets all history: what asks for an older resourceVersion gets 410. */
  compact(): void;
  /** The stored objects of a resource, in the order of their names; a view for tests, not to be changed. */
  objects(group: string, plural: string): readonly ApiObject[];
  stop(): Promise<void>;
}

/** Namespaces that every cluster has. */
const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/**
 * Starts an API server that knows no user and refuses nobody. Rejects where no port is free on all addresses.
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
