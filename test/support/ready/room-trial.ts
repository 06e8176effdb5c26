/**
 * Compares what `refit ready` says about the room for pods with the real scheduler: each pod is deleted while its node is
 * cordoned, and created again without a node.
 */
import type { KubeClient } from '../../../src/kube/client.ts';
import {
  type ConfigMap,
  configMaps,
  type KubeObject,
  type Node,
  namespaces,
  nodes,
  type Pod,
  pods,
  trueCondition,
} from '../../../src/kube/resources.ts';
import { askingOf } from '../../../src/ready/asking.ts';
import { movedPods, roomFactsOf } from '../../../src/ready/checks/room.ts';
import { type Fit, fitOf } from '../../../src/ready/room/room.ts';
import { sleep, systemClock } from '../../../src/util/clock.ts';
import type { RandomCluster } from './random-cluster.ts';

export interface Trial {
  readonly pod: string;
  readonly node: string;
  readonly fit: Fit;
  /** True if the scheduler found another node. */
  readonly isPlaced: boolean;
  /** What the scheduler said if it found none. */
  readonly said: string;
}

/** Returns true if the scheduler did not do what Refit said. A pod of which Refit is not sure disagrees with nothing. */
export function disagrees({ fit, isPlaced }: Trial): boolean {
  return (fit.kind === 'nowhere' && isPlaced) || (fit.kind === 'fits' && !isPlaced);
}

const DEADLINE_MS = 60_000;
const POLL_MS = 20;
const OWNER = 'owner';

export interface TrialStage {
  readonly client: KubeClient;
  /** A namespace that nothing else uses. It is created and deleted. */
  readonly namespace: string;
  readonly abort: AbortSignal;
}

/** Creates the cluster, lets the scheduler place its pods, tries each pod, and removes everything. */
export async function tryRoom(stage: TrialStage, cluster: RandomCluster): Promise<Trial[]> {
  const { client, namespace } = stage;
  try {
    await create(stage, cluster);
    const facts = await roomFactsOf(askingOf(client, stage.abort));
    if (facts.kind === 'unknown') throw new Error(facts.why);
    const trials: Trial[] = [];
    for (const place of facts.value.places) {
      const moved = movedPods(place).filter(({ metadata }) => metadata.namespace === namespace);
      if (moved.length === 0) continue;
      const fits = moved.map((pod) => ({
        name: pod.metadata.name,
        fit: fitOf(pod, place, facts.value),
      }));
      await cordon(stage, place.name, true);
      for (const { name, fit } of fits) trials.push(await tryPod(stage, name, place.name, fit));
      await cordon(stage, place.name, false);
    }
    return trials;
  } finally {
    await remove(stage, cluster);
  }
}

async function create(
  { client, namespace, abort }: TrialStage,
  { nodes: wanted, workloads }: RandomCluster,
) {
  await client.create(namespaces, { metadata: { name: namespace } });
  const owner = await client.create<ConfigMap>(
    configMaps,
    { metadata: { name: OWNER } },
    { namespace },
  );
  for (const node of wanted as readonly Node[]) {
    const { name } = node.metadata;
    await client.create<Node>(nodes, node);
    await until(abort, async () => {
      const { status, spec } = await client.get<Node>(nodes, name);
      const isTainted = spec?.taints?.some(({ key }) => key.startsWith('node.kubernetes.io/'));
      return trueCondition(status?.conditions, 'Ready') !== undefined && isTainted !== true;
    });
    // The simulated kubelet has written its own status.
    await client.patch(
      nodes,
      name,
      { status: node.status },
      { type: 'merge', subresource: 'status' },
    );
  }
  const ownerReferences = [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: OWNER,
      uid: owner.metadata.uid ?? '',
      controller: true,
    },
  ];
  for (const { name, count, labels, spec } of workloads)
    for (let index = 0; index < count; index++) {
      const metadata = { name: `${name}-${index}`, labels: { ...labels }, ownerReferences };
      await client.create<Pod>(pods, { metadata, spec }, { namespace });
      const { isPlaced } = await decisionOn({ client, namespace, abort }, metadata.name);
      // A pod that fits nowhere from the start would only disturb the trials.
      if (!isPlaced) await removePod({ client, namespace, abort }, metadata.name);
    }
}

/** Deletes the pod, creates a copy without a node, notes what the scheduler does, and restores the pod. */
async function tryPod(stage: TrialStage, name: string, node: string, fit: Fit): Promise<Trial> {
  const { client, namespace } = stage;
  const { metadata, spec } = await client.get<Pod>(pods, name, { namespace });
  const { labels, ownerReferences } = metadata;
  const named = (part: string, more: object): Pod =>
    // Each pod has a name of its own, because the simulated kubelet deletes pods by their names, and may be late.
    ({
      metadata: { name: `${name}-${part}`, labels, ownerReferences },
      spec: { ...withoutDefaults(spec), ...more },
    }) as Pod;
  await removePod(stage, name);
  await client.create(pods, named('moved', {}), { namespace });
  const { isPlaced, said } = await decisionOn(stage, `${name}-moved`);
  await removePod(stage, `${name}-moved`);
  await client.create(pods, named('back', { nodeName: node }), { namespace });
  return { pod: name, node, fit, isPlaced, said };
}

function withoutDefaults(spec: Pod['spec']): Pod['spec'] {
  const { nodeName: _node, ...rest } = (spec ?? {}) as Record<string, unknown>;
  delete rest['serviceAccountName'];
  delete rest['serviceAccount'];
  delete rest['volumes'];
  const containers = (rest['containers'] as Record<string, unknown>[]).map(
    ({ volumeMounts: _mounts, ...container }) => container,
  );
  // The API server adds tolerations for two taints of nodes that do not answer; they change nothing here.
  return { ...rest, containers } as Pod['spec'];
}

async function removePod({ client, namespace, abort }: TrialStage, name: string): Promise<void> {
  await client.delete(pods, name, { namespace, gracePeriodSeconds: 0 });
  await until(abort, async () => !(await exists(client, namespace, name)));
}

async function exists(client: KubeClient, namespace: string, name: string): Promise<boolean> {
  const { items } = await client.list(pods, { namespace, fieldSelector: `metadata.name=${name}` });
  return items.length > 0;
}

/** Waits until the scheduler has decided about the pod. */
async function decisionOn({ client, namespace, abort }: TrialStage, name: string) {
  let decision = { isPlaced: false, said: '' };
  await until(abort, async () => {
    const { spec, status } = await client.get<Pod>(pods, name, { namespace });
    const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
    const isPlaced = spec?.nodeName !== undefined;
    decision = { isPlaced, said: scheduled?.message ?? '' };
    return isPlaced || (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable');
  });
  return decision;
}

/** Cordons or uncordons the node, and waits until the scheduler has seen that. */
async function cordon(stage: TrialStage, name: string, unschedulable: boolean): Promise<void> {
  const { client, namespace, abort } = stage;
  await client.patch(nodes, name, { spec: { unschedulable } }, { type: 'merge' });
  await until(abort, async () => {
    const probe = `probe-${systemClock.monotonic().toString().replace('.', '-')}`;
    const spec = {
      terminationGracePeriodSeconds: 0,
      nodeSelector: { 'kubernetes.io/hostname': name },
      containers: [{ name: 'c', image: 'example.com/none' }],
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    };
    await client.create<Pod>(pods, { metadata: { name: probe }, spec }, { namespace });
    const { isPlaced, said } = await decisionOn(stage, probe);
    await removePod(stage, probe);
    return unschedulable
      ? said.includes('unschedulable')
      : isPlaced || !said.includes('unschedulable');
  });
}

async function remove(
  { client, namespace, abort }: TrialStage,
  { nodes: made }: RandomCluster,
): Promise<void> {
  const { items } = await client.list(pods, { namespace });
  for (const { metadata } of items)
    await client
      .delete(pods, metadata.name, { namespace, gracePeriodSeconds: 0 })
      .catch(() => undefined);
  for (const { metadata } of made as readonly KubeObject[])
    await client.delete(nodes, metadata.name).catch(() => undefined);
  await client.delete(namespaces, namespace).catch(() => undefined);
  await until(abort, async () => {
    const left = await client.list(nodes);
    return !left.items.some((each) =>
      made.some((own) => (own as KubeObject).metadata.name === each.metadata.name),
    );
  });
}

async function until(abort: AbortSignal, isTrue: () => Promise<boolean>): Promise<void> {
  const end = systemClock.monotonic() + DEADLINE_MS;
  while (!(await isTrue())) {
    if (systemClock.monotonic() > end)
      throw new Error(`not true after ${DEADLINE_MS} ms: ${isTrue.toString()}`);
    await sleep(systemClock, POLL_MS, abort);
  }
}
