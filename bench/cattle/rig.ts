/**
 * Starts the cluster for the figures of system-upgrade-controller: a real control plane, nodes and pods that kwok
 * simulates, and Refit as it is shipped.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type Node, nodes, readyCondition } from '../../src/kube/resources.ts';
import { boundedClient } from '../../src/kube/transport/bounded-client.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';
import { settleAll } from '../../src/util/waits.ts';
import { NODE_FLAGS } from '../../tools/build/node-flags.ts';
import { buildRefit } from '../../tools/build/refit.ts';
import { type ControlPlane, startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';

export const NAMESPACE = 'system-upgrade';
/** The name of the controller, and of its Lease. */
const NAME = 'system-upgrade-controller';
export const AT_ONCE = 20;
const ASK_MS = 5;
const MOST_ASKED = 200;

export interface CattleParts {
  /** The directory for all files of the rig. The caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
  readonly nodes?: number;
  /** Options for Node.js, for example to record a profile. */
  readonly nodeOptions?: readonly string[];
}

export interface CattleRig extends AsyncDisposable {
  readonly plane: ControlPlane;
  readonly client: KubeClient;
  /** The nodes, sorted by name. */
  readonly nodes: readonly Node[];
  /** Starts the controller. Resolves when the controller is ready, which is checked every few milliseconds. */
  start(): Promise<Process>;
}

export async function startRig(
  { directory, clock, abort, ...parts }: CattleParts,
  count: number,
): Promise<CattleRig> {
  await using started = new AsyncDisposableStack();
  const components = ['kube-controller-manager', 'kube-scheduler', 'kwok'] as const;
  const plane = await startControlPlane({ components, audit: true, abort });
  started.defer(async () => await plane.stop());
  const client = createClient(await loadClusterConfig({ path: await plane.kubeconfig('admin') }));
  started.defer(() => client.close());
  await installDefinitions(client, clock, abort);
  const ready = await createNodes(client, count, abort);
  await mkdir(join(directory, 'logs'), { recursive: true });
  const command = await buildRefit(join(directory, 'refit'));
  const kubeconfig = await plane.kubeconfig('cattle');
  const start = async (): Promise<Process> => {
    const address = `127.0.0.1:${await freePort()}`;
    return await startProcess({
      name: NAME,
      command: process.execPath,
      args: [...NODE_FLAGS, ...(parts.nodeOptions ?? []), command, NAME],
      environment: {
        SYSTEM_UPGRADE_CONTROLLER_KUBE_CONFIG: kubeconfig,
        SYSTEM_UPGRADE_CONTROLLER_NAME: NAME,
        SYSTEM_UPGRADE_CONTROLLER_NAMESPACE: NAMESPACE,
        SYSTEM_UPGRADE_CONTROLLER_LEADER_ELECT: 'true',
        SYSTEM_UPGRADE_CONTROLLER_HEALTH_ADDRESS: address,
      },
      directory,
      ready: async () => await isReady(`http://${address}/readyz`, clock),
      clock,
      abort,
    });
  };
  const everything = started.move();
  return {
    plane,
    client,
    nodes: ready,
    start,
    [Symbol.asyncDispose]: async () => await everything.disposeAsync(),
  };
}

/** Waits until the URL answers. It asks more often than `startProcess` does. */
async function isReady(url: string, clock: Clock): Promise<boolean> {
  for (let asked = 0; asked < MOST_ASKED; asked++) {
    if (
      await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return true;
    await sleep(clock, ASK_MS);
  }
  return false;
}

/** Creates the nodes. Resolves when all nodes are Ready and have no taints. */
async function createNodes(client: KubeClient, count: number, abort: AbortSignal): Promise<Node[]> {
  const names = Array.from({ length: count }, (_, index) => `w${index + 1}`);
  const stop = new AbortController();
  const informer = createInformer(client, nodes);
  const areReady = (): boolean =>
    informer.list().filter((node) => readyCondition(node)?.status === 'True' && !node.spec?.taints)
      .length === count;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  abort.addEventListener('abort', () => reject(new Error('interrupted')), { once: true });
  informer.addHandler({ updated: () => areReady() && resolve() });
  const following = informer.run(stop.signal);
  const bounded = boundedClient(client, AT_ONCE);
  await settleAll(names.map(async (name) => await bounded.create(nodes, simulatedNode(name))));
  await promise.finally(() => stop.abort());
  await following;
  return informer.list().toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** Returns a Plan for every node. It has no cordon and no drain, so that only the Jobs take time. */
export function examplePlan(concurrency: number, name = 'bench'): CattlePlan {
  return {
    apiVersion: 'upgrade.cattle.io/v1',
    kind: cattlePlans.kind,
    metadata: { name, namespace: NAMESPACE },
    spec: {
      concurrency,
      version: 'v1.36.3+k3s1',
      nodeSelector: {
        matchExpressions: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
      },
      serviceAccountName: 'system-upgrade',
      upgrade: { image: 'rancher/k3s-upgrade' },
    },
  };
}
