/**
 * One run of the informer's trial: a server, a proxy that makes faults, a mutator, two informers, and the comparison of
 * the results.
 */
import type { KubeClient, WatchEvent } from '../../src/kube/client.ts';
import type { ClusterConfig } from '../../src/kube/config/cluster-config.ts';
import {
  compareResourceVersions,
  type KubeObject,
  type Lease,
  leases,
  namespaces,
} from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { createInformer, type Informer } from '../../src/kube/watch/informer.ts';
import { systemClock } from '../../src/util/clock.ts';
import { stableStringify } from '../../src/util/json.ts';
import { SkewedClock } from '../support/clock/skewed-clock.ts';
import { startApiFaults, type Upstream } from './api-faults.ts';
import { throwFaultDice } from './fault-dice.ts';
import { CHOSEN, mutate } from './mutator.ts';
import { judgeOrder, type OrderJudge } from './order-judge.ts';
import { seededRandom } from './random.ts';
import { startTcpProxy } from './tcp-proxy.ts';

export interface Trial {
  readonly seed: number;
  readonly mutations: number;
  /** The configuration for clients without faults. */
  readonly config: ClusterConfig;
  readonly upstream: Upstream;
  readonly compact: () => void;
  /**
   * Changes the events between the informers and their client, to plant faults that the trial must find. No other fault
   * happens if it is set.
   */
  readonly tamper?: Tamper;
}

export type Tamper = (
  events: AsyncIterable<WatchEvent<KubeObject>>,
) => AsyncIterable<WatchEvent<KubeObject>>;

export interface Outcome {
  /** Empty if the view finally equals the state of the server and every event was legal. */
  readonly violations: readonly string[];
  readonly faults: ReadonlyMap<string, number>;
  readonly events: number;
}

/** Client and informers wait only a twentieth of their usual times. Otherwise a trial would consist mostly of backoff. */
const HASTE = 20;
/**
 * The real milliseconds within which the views must become right after the last fault. The limit is long, for busy
 * machines.
 */
const PATIENCE_MS = 60_000;
/** The names of two objects. After all other changes, the first object is edited and the second is deleted. */
export const LAST = { edited: 'last-edited', deleted: 'last-deleted' } as const;

interface Observer {
  readonly informer: Informer<Lease>;
  readonly judge: OrderJudge;
  readonly labelSelector: string | undefined;
}

export async function runTrial(trial: Trial): Promise<Outcome> {
  const { seed, mutations, config, upstream, compact, tamper = (events) => events } = trial;
  const random = seededRandom(seed);
  const dice = throwFaultDice(random);
  const faults = await startApiFaults({ upstream, fault: dice.request });
  const proxy = await startTcpProxy({
    target: { host: '127.0.0.1', port: faults.port },
    fault: () => dice.chunk(),
  });
  // No fault may cause another list if there is tampering, because that list would bring back the events that the
  // tampering dropped.
  if (trial.tamper) dice.calm();
  const clock = new SkewedClock(systemClock, { rate: trial.tamper ? 1 : HASTE });
  const through = { ...config, user: {}, server: `http://${proxy.host}:${proxy.port}` };
  const direct = createClient(config);
  const faulty = createClient(through, { clock, watchIdleMs: 8_000 });
  const stop = new AbortController();
  const namespace = `trial-${seed}`;
  await direct.create(namespaces, { metadata: { name: namespace } });
  const observers = [undefined, `${CHOSEN}=yes`].map((labelSelector): Observer => {
    const options = { namespace, labelSelector, clock, random };
    const informer = createInformer(clientOfInformers(faulty, tamper), leases, options);
    const judge = judgeOrder(labelSelector ?? 'all', labelSelector ? 'passing' : 'final');
    informer.addHandler(judge.handler);
    return { informer, judge, labelSelector };
  });
  const running = observers.map(async ({ informer }) => await informer.run(stop.signal));
  try {
    await mutate(mutations, { random, namespace, direct, faulty, compact });
    dice.calm();
    await makeLastChanges(observers, direct, namespace);
    const wrong = await Promise.all(
      observers.map(async (observer) => await compare(observer, direct, namespace)),
    );
    const events = observers.reduce((sum, { judge }) => sum + judge.events, 0);
    const violations = [...wrong.flat(), ...observers.flatMap(({ judge }) => judge.violations)];
    return {
      violations: violations.map((text) => `seed ${seed}: ${text}`),
      faults: dice.counts,
      events,
    };
  } finally {
    stop.abort();
    await Promise.all(running);
    await direct.delete(namespaces, namespace);
    for (const client of [direct, faulty]) client.close();
    await proxy.stop();
    await faults.stop();
  }
}

/**
 * Returns a client that lists in very small pages. So a list consists of several pages, and the history may be
 * compacted between two of them.
 */
function clientOfInformers(client: KubeClient, tamper: Tamper): KubeClient {
  const small = {
    listAll: async (...[resource, options]: Parameters<KubeClient['listAll']>) =>
      await client.listAll(resource, { ...options, limit: 4 }),
    watch: (...[resource, options]: Parameters<KubeClient['watch']>) =>
      tamper(client.watch(resource, options)),
  };
  return small as unknown as KubeClient;
}

/**
 * If there is tampering, no other fault may cause a new list, because that list would restore the events that the
 * tampering dropped.
 */
async function makeLastChanges(
  observers: readonly Observer[],
  direct: KubeClient,
  namespace: string,
): Promise<void> {
  const create = async (name: string): Promise<Lease> =>
    await direct.create(leases, { metadata: { name, namespace, labels: { [CHOSEN]: 'yes' } } });
  const edited = await create(LAST.edited);
  await create(LAST.deleted);
  // Waits until all views contain the object. A view that lists later would not miss its deletion. If a view never
  // contains the object, the comparison reports that.
  await eventually(() =>
    observers.every(({ informer }) => informer.get(LAST.deleted, namespace) !== undefined),
  );
  const spec = { ...edited.spec, holderIdentity: 'last' };
  await direct.replace(leases, { ...edited, spec }, { namespace });
  await direct.delete(leases, LAST.deleted, { namespace });
  await create('last');
}

/** Waits until the view is as new as the server's state, then compares them. */
async function compare(
  { informer, judge, labelSelector }: Observer,
  direct: KubeClient,
  namespace: string,
): Promise<string[]> {
  const name = labelSelector ?? 'all';
  const list = await direct.listAll(leases, { namespace, labelSelector });
  const newest = list.metadata.resourceVersion ?? '0';
  const reached = await eventually(
    () => compareResourceVersions(informer.resourceVersion() ?? '0', newest) >= 0,
  );
  if (!reached)
    return [`${name}: the view stays at ${informer.resourceVersion()}, the server is at ${newest}`];
  const wanted = sorted(list.items);
  const found = sorted(informer.list());
  const differs =
    wanted.length !== found.length || wanted.some((text, index) => text !== found[index]);
  const living = new Set(list.items.map(({ metadata }) => metadata.uid));
  return [
    ...(differs
      ? [
          `${name}: the view differs from the server:\n${found.join('\n')}\ninstead of\n${wanted.join('\n')}`,
        ]
      : []),
    ...(judge.living.symmetricDifference(living).size > 0
      ? [`${name}: the events do not add up to the view`]
      : []),
  ];
}

function sorted(objects: readonly KubeObject[]): string[] {
  const plain = objects.map((object) => ({
    ...object,
    metadata: { ...object.metadata, managedFields: undefined },
  }));
  return plain.map(stableStringify).toSorted((a, b) => (a < b ? -1 : 1));
}

/** Returns false if the condition does not become true in time. */
async function eventually(condition: () => boolean): Promise<boolean> {
  const until = systemClock.monotonic() + PATIENCE_MS;
  while (!condition()) {
    if (systemClock.monotonic() > until) return false;
    await new Promise<void>((resolve) => void systemClock.schedule(5, resolve));
  }
  return true;
}
