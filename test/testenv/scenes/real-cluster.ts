/**
 * A real API server for the scenes of the table. No controller of Kubernetes runs beside it, because such controllers have
 * the clock of this machine. So the scenes play these controllers, as they do with the API server in memory.
 */

import { installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { cattlePlans, nodeRollouts, upgradePolicies } from '../../../src/api/kinds.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import {
  configMaps,
  events,
  jobs,
  type KubeObject,
  leases,
  namespaced,
  namespaces,
  nodes,
  podDisruptionBudgets,
  pods,
  type Resource,
} from '../../../src/kube/resources.ts';
import { ifFound } from '../../../src/kube/status-error.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { requesterTo } from '../../../src/kube/transport/requester.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { type ControlPlane, startControlPlane } from '../../../tools/controlplane/control-plane.ts';
import { Stage } from '../../scenes/stage.ts';
import { FakeClock } from '../../support/clock/fake-clock.ts';
import { T0 } from '../../support/clock/times.ts';
import { SPARING } from '../control-plane.ts';
import { keepBudgets } from './kept-budgets.ts';
import { readingFromCache, watchAll } from './scene-callers.ts';
import { SceneProxy } from './scene-proxy.ts';

const serviceAccounts = namespaced('v1', 'ServiceAccount');
/** The namespaces in which pods of the scenes run. A pod needs the ServiceAccount of its namespace. */
const POD_NAMESPACES = ['default'];
/** The Namespaces that exist when a scene begins. The documented roles bring others, which the scenes create themselves. */
const NAMESPACES: ReadonlySet<string> = new Set([
  'default',
  'kube-node-lease',
  'kube-public',
  'kube-system',
  'k0s-autopilot',
]);
/** Everything that a scene may create, except Namespaces. */
const KINDS: readonly Resource[] = [
  plans,
  cattlePlans,
  upgradePolicies,
  nodeRollouts,
  controlNodes,
  nodes,
  pods,
  jobs,
  podDisruptionBudgets,
  leases,
  configMaps,
  events,
];

export class RealCluster implements AsyncDisposable {
  readonly #plane: ControlPlane;
  readonly #client: ReturnType<typeof createClient>;
  /** The uids of the objects that every cluster has. */
  #usual = new Set<string>();

  private constructor(plane: ControlPlane, client: ReturnType<typeof createClient>) {
    this.#plane = plane;
    this.#client = client;
  }

  static async start(): Promise<RealCluster> {
    const plane = await startControlPlane({ environment: SPARING, log: () => undefined });
    const client = createClient(await loadClusterConfig({ path: await plane.kubeconfig('admin') }));
    await installDefinitions(client, systemClock);
    for (const namespace of POD_NAMESPACES) {
      const account = { metadata: { name: 'default', namespace } };
      await client.create(serviceAccounts, account, { namespace });
    }
    const cluster = new RealCluster(plane, client);
    const usual = (await cluster.#all()).filter(
      ({ resource, object }) => resource !== namespaces || NAMESPACES.has(object.metadata.name),
    );
    cluster.#usual = new Set(usual.map(({ object }) => object.metadata.uid ?? ''));
    return cluster;
  }

  /** Opens a stage on the API server, which has no objects of an earlier stage. */
  async openStage(directory: string): Promise<Stage> {
    await this.#clean();
    const proxies: SceneProxy[] = [];
    const settled = async (): Promise<void> => await proxies[0]?.settled();
    const clock = new FakeClock(T0, { settle: settled });
    const proxy = await SceneProxy.start(this.#plane, clock);
    proxies.push(proxy);
    const config = { server: proxy.url, user: {}, namespace: 'default', files: [] };
    const caller = requesterTo(config, { clock });
    const callerOfWatches = requesterTo(config, { clock: systemClock });
    await watchAll(callerOfWatches, KINDS);
    const server = {
      url: proxy.url,
      caller,
      callerOfHosts: readingFromCache(caller, async () => await proxy.delivered()),
      settled,
      stop: async () => {
        callerOfWatches.close();
        await proxy.stop();
      },
    };
    const stage = await Stage.on(server, { clock, directory });
    await stage.start(keepBudgets);
    return stage;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.close();
    await this.#plane.stop();
  }

  async #all(): Promise<{ readonly resource: Resource; readonly object: KubeObject }[]> {
    const lists = [...KINDS, namespaces].map(async (resource) => {
      const { items } = await this.#client.listAll(resource);
      return items.map((object) => ({ resource, object }));
    });
    return (await Promise.all(lists)).flat();
  }

  /** Deletes what a scene has left. */
  async #clean(): Promise<void> {
    for (const { resource, object } of await this.#all())
      if (!this.#usual.has(object.metadata.uid ?? '')) await this.#delete(resource, object);
  }

  async #delete(resource: Resource, { metadata }: KubeObject): Promise<void> {
    const { name, namespace, finalizers = [] } = metadata;
    const place = { namespace };
    if (finalizers.length > 0) {
      const change = { metadata: { finalizers: null } };
      await this.#client.patch(resource, name, change, { ...place, type: 'merge' });
    }
    const how = { gracePeriodSeconds: 0, propagationPolicy: 'Background' } as const;
    await ifFound(this.#client.delete(resource, name, { ...place, ...how }));
    if (resource !== namespaces) return;
    const left = await ifFound(this.#client.get(namespaces, name));
    if (!left) return;
    // The namespace controller does it in a real cluster, when the namespace is empty.
    const finalized = { ...left, spec: { finalizers: [] } } as KubeObject;
    await this.#client.replace(namespaces, finalized, { subresource: 'finalize' });
  }
}
