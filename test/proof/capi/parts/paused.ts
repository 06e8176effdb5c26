/**
 * Tests a Cluster that is paused in the middle of a drain, and pods that Cluster API does not drain. Refit waits, and
 * does not evict these pods.
 */
import { nodes, type Pod, podDisruptionBudgets, pods } from '../../../../src/kube/resources.ts';
import { ifFound } from '../../../../src/kube/status-error.ts';
import { decodeSignal } from '../../../../src/signal/annotations.ts';
import { run } from '../../../../tools/controlplane/run.ts';
import { CLUSTER, capiClusters, NAMESPACE } from '../machines/objects.ts';
import { conditionOf } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { wantWorkers } from './update.ts';

/**
 * The labels of the pods, by what happens to the pods. No controller here counts the pods of a budget, so the budget
 * allows no eviction until it is deleted.
 */
const PODS = {
  plain: {},
  skipped: { 'cluster.x-k8s.io/drain': 'skip' },
  blocked: { app: 'blocked' },
};
const BUDGET = 'blocked';

export async function paused(scene: Scene): Promise<void> {
  const { checks, cluster, options } = scene;
  const { client } = cluster;
  const before = await scene.identities('workers');
  const version = scene.nextVersion();
  await scene.apply({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: BUDGET, namespace: NAMESPACE },
    spec: { minAvailable: 1, selector: { matchLabels: PODS.blocked } },
  });
  for (const { node } of before.values()) await createPods(scene, node, PODS);
  let node = '';
  await checks.check(
    'a drain evicts the pod that may go, and leaves the one with cluster.x-k8s.io/drain: skip',
    async () => {
      await wantWorkers(scene, { version });
      await scene.until('a Machine that tells of its budget', async () => {
        const machines = await scene.machines('workers');
        const told = machines.find((machine) =>
          conditionOf(machine, 'Updating')?.message?.includes(`/${BUDGET} `),
        );
        node = told?.status?.nodeRef?.name ?? '';
        return told !== undefined;
      });
      await scene.until(
        'the end of the plain pod',
        async () => (await podOf(scene, `plain-${node}`)) === undefined,
      );
      return (await podOf(scene, `skipped-${node}`)) ? [] : ['the other one is gone, too'];
    },
  );
  await checks.check(
    'while the Cluster is paused nothing goes on, and refit why says so',
    async () => {
      await pause(scene, true);
      const said = `Cluster ${NAMESPACE}/${CLUSTER} is paused: ${node} is not drained`;
      await scene.until(`refit why: ${said}`, async () => {
        const { stdout } = await run(options.refit, [
          'why',
          node,
          '--kubeconfig',
          scene.kubeconfig,
        ]);
        return stdout.includes(said);
      });
      await client.delete(podDisruptionBudgets, BUDGET, { namespace: NAMESPACE });
      // This is longer than a drain waits between two evictions.
      const end = Date.now() + 15_000;
      await scene.until('15 s', async () => await Promise.resolve(Date.now() > end));
      const status = decodeSignal((await client.get(nodes, node)).metadata.annotations)?.status
        ?.status;
      return [
        ...(status === 'Cordoning' ? [] : [`the node is at ${status}`]),
        ...((await podOf(scene, `blocked-${node}`)) ? [] : ['its pod was evicted']),
      ];
    },
  );
  await checks.check('it is resumed: both workers end in place', async () => {
    await pause(scene, false);
    await scene.settled('workers', version);
    return await scene.wrongAfter('workers', version, before);
  });
  for (const each of before.values()) await removePods(scene, each.node, Object.keys(PODS));
}

export async function removePods(
  { cluster: { client } }: Scene,
  node: string,
  sorts: readonly string[],
) {
  for (const sort of sorts)
    await ifFound(
      client.delete(pods, `${sort}-${node}`, { namespace: NAMESPACE, gracePeriodSeconds: 0 }),
    );
}

/** Creates pods on a node. `sorts` has the labels of each pod by the first part of its name. */
export async function createPods(
  scene: Scene,
  nodeName: string,
  sorts: Readonly<Record<string, Record<string, string>>>,
): Promise<void> {
  // No controller creates this ServiceAccount here.
  await scene.apply({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default', namespace: NAMESPACE },
  });
  const { client } = scene.cluster;
  for (const [sort, labels] of Object.entries(sorts)) {
    const name = `${sort}-${nodeName}`;
    const spec = {
      nodeName,
      containers: [{ name: 'one', image: 'none' }],
      terminationGracePeriodSeconds: 0,
    };
    await client.create(pods, { metadata: { name, namespace: NAMESPACE, labels }, spec });
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await client.patch(
      pods,
      name,
      { status },
      { type: 'merge', namespace: NAMESPACE, subresource: 'status' },
    );
  }
}

export async function podOf(
  { cluster: { client } }: Scene,
  name: string,
): Promise<Pod | undefined> {
  return await ifFound(client.get(pods, name, { namespace: NAMESPACE }));
}

async function pause({ cluster: { client } }: Scene, isPaused: boolean): Promise<void> {
  const patch = { spec: { paused: isPaused } };
  await client.patch(capiClusters, CLUSTER, patch, { type: 'merge', namespace: NAMESPACE });
}
