/**
 * Replaces machine-controller. It handles MachineDeployments, MachineSets and Machines as the original does. The Nodes
 * that it creates have no real machine.
 */
import type { KubeClient } from '../../../src/kube/client.ts';
import {
  type KubeObject,
  type Node,
  namespaced,
  nodes,
  type Resource,
  readyCondition,
} from '../../../src/kube/resources.ts';
import { ifFound, isConflict, isNotFound } from '../../../src/kube/status-error.ts';
import { rfc3339, sleep, systemClock } from '../../../src/util/clock.ts';
import { sameJson } from '../../../src/util/json.ts';

export const DEFINITIONS = 'test/support/kubeadm/machine-definitions.yaml';
const GROUP = 'cluster.k8s.io/v1alpha1';
const namespace = 'kube-system';
const ROUND_MS = 300;
/** The interval of the heartbeats. It is much shorter than the 50 s after which a Node without heartbeats is NotReady. */
const HEARTBEAT_MS = 10_000;

interface Template {
  readonly metadata: { readonly labels: Record<string, string> };
  readonly spec: { readonly versions: { readonly kubelet: string } };
}

interface Counts {
  observedGeneration?: number;
  replicas?: number;
  updatedReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
}

export interface MachineDeployment extends KubeObject {
  spec: {
    replicas: number;
    paused?: boolean;
    template: Template;
    selector: object;
    strategy: {
      type: 'RollingUpdate';
      rollingUpdate: { maxSurge: number; maxUnavailable: number };
    };
  };
  status?: Counts;
}

interface MachineSet extends KubeObject {
  spec: { replicas: number; template: Template; selector: object };
  status?: Counts;
}

export interface Machine extends KubeObject {
  spec: Template['spec'];
  status?: {
    nodeRef?: { kind: string; name: string };
    errorReason?: string;
    errorMessage?: string;
  };
}

export const machineDeployments = namespaced<MachineDeployment>(GROUP, 'MachineDeployment');
export const machineSets = namespaced<MachineSet>(GROUP, 'MachineSet');
export const machines = namespaced<Machine>(GROUP, 'Machine');

export interface MachineController extends AsyncDisposable {
  /** Removes all pools, their Machines and Nodes, and forgets them. */
  clear(): Promise<void>;
  /** Determines what a new Machine does: it joins with a Node, stays without a Node, or has a final error. */
  behaviour: (machine: Machine) => 'joins' | 'waits' | 'fails';
  /**
   * Each change of a MachineDeployment that a round observed: the numbers of its Machines by version, the number of
   * available Machines, and whether it is paused.
   */
  history: { name: string; paused: boolean; machines: Record<string, number>; available: number }[];
}

/** Call it after the definitions have been applied. */
export function startMachineController(client: KubeClient): MachineController {
  const stop = new AbortController();
  const controller: MachineController = {
    behaviour: () => 'joins',
    history: [],
    async clear() {
      for (const resource of [machineDeployments, machineSets, machines])
        await untilGone(client, resource);
      await removeNodes(client, []);
      controller.history = [];
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      await controller.clear();
    },
  };
  const running = rounds();
  return controller;

  async function rounds(): Promise<void> {
    let beat = systemClock.monotonic();
    while (!stop.signal.aborted) {
      const isDue = systemClock.monotonic() - beat >= HEARTBEAT_MS;
      if (isDue) beat = systemClock.monotonic();
      if (isDue) await keepReady(client).catch(() => undefined);
      await round(client, controller).catch((error: unknown) => {
        // The round ends, as in every controller. The next round handles the objects that have changed meanwhile.
        if (!isConflict(error) && !isNotFound(error)) throw error;
      });
      await sleep(systemClock, ROUND_MS, stop.signal).catch(() => undefined);
    }
  }
}

/** Deletes until the list is empty, because the controller may create one more object meanwhile. */
async function untilGone(client: KubeClient, resource: Resource): Promise<void> {
  for (;;) {
    const { items } = await client.listAll(resource, { namespace });
    if (items.length === 0) return;
    for (const { metadata } of items)
      await ifFound(client.delete(resource, metadata.name, { namespace }));
  }
}

async function round(client: KubeClient, controller: MachineController): Promise<void> {
  const all = await client.listAll(machineDeployments, { namespace });
  const sets = await client.listAll(machineSets, { namespace });
  const found = await client.listAll(machines, { namespace });
  const nodesNow = (await client.listAll(nodes)).items;
  for (const deployment of all.items) {
    const own = sets.items.filter((each) => isOwned(each, deployment));
    record(controller, deployment, own, found.items);
    await reconcileDeployment(client, deployment, own);
  }
  for (const set of sets.items)
    await reconcileSet(
      client,
      set,
      found.items.filter((each) => isOwned(each, set)),
      nodesNow,
    );
  for (const machine of found.items)
    await reconcileMachine(client, machine, controller.behaviour(machine));
  await removeNodes(
    client,
    found.items.map(({ metadata }) => metadata.name),
  );
}

function isOwned({ metadata }: KubeObject, owner: KubeObject): boolean {
  return metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) ?? false;
}

function record(
  { history }: MachineController,
  { metadata: { name }, spec }: MachineDeployment,
  own: readonly MachineSet[],
  all: readonly Machine[],
): void {
  const count: Record<string, number> = {};
  for (const { spec: machine } of all.filter((each) => own.some((set) => isOwned(each, set))))
    count[machine.versions.kubelet] = (count[machine.versions.kubelet] ?? 0) + 1;
  const available = sum(own, ({ status }) => status?.availableReplicas ?? 0);
  const entry = { name, paused: spec.paused === true, machines: count, available };
  if (
    !sameJson(
      history.findLast((each) => each.name === name),
      entry,
    )
  )
    history.push(entry);
}

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0);

/** The `reconcile` of the original. It only scales a MachineDeployment that is paused. */
async function reconcileDeployment(
  client: KubeClient,
  deployment: MachineDeployment,
  own: MachineSet[],
): Promise<void> {
  const { spec, metadata } = deployment;
  let fresh = own.find((set) => sameJson(withoutHash(set.spec.template), spec.template));
  const old = own.filter((set) => set !== fresh);
  if (fresh && (await copyAnnotations(client, deployment, fresh))) return;
  if (spec.paused) await scalePaused(client, deployment, fresh, old);
  else {
    fresh ??= await createSet(client, deployment, old);
    const { maxSurge, maxUnavailable } = spec.strategy.rollingUpdate;
    const total = sum([...old, fresh], ({ spec: { replicas } }) => replicas);
    const more = Math.min(spec.replicas + maxSurge - total, spec.replicas - fresh.spec.replicas);
    if (more > 0) await scale(client, fresh, fresh.spec.replicas + more);
    await scaleDown(client, deployment, fresh, old, maxUnavailable);
  }
  const counts = [...old, ...(fresh ? [fresh] : [])].map(({ status = {} }) => status);
  const status: Counts = {
    observedGeneration: metadata.generation ?? 0,
    replicas: sum(counts, ({ replicas = 0 }) => replicas),
    updatedReplicas: fresh?.status?.replicas ?? 0,
    readyReplicas: sum(counts, ({ readyReplicas = 0 }) => readyReplicas),
    availableReplicas: sum(counts, ({ availableReplicas = 0 }) => availableReplicas),
  };
  if (sameJson(status, deployment.status)) return;
  await client.replace(
    machineDeployments,
    { ...deployment, status },
    { namespace, subresource: 'status' },
  );
}

/**
 * Returns true if it had to copy annotations; the original then ends its round. Annotations that were removed from the
 * MachineDeployment stay on the MachineSet.
 */
async function copyAnnotations(
  client: KubeClient,
  { metadata }: MachineDeployment,
  set: MachineSet,
): Promise<boolean> {
  const annotations = { ...set.metadata.annotations, ...metadata.annotations };
  if (sameJson(annotations, set.metadata.annotations ?? {})) return false;
  await client.replace(
    machineSets,
    { ...set, metadata: { ...set.metadata, annotations } },
    { namespace },
  );
  return true;
}

function withoutHash({ metadata, spec }: Template): Template {
  const { 'machine-template-hash': _hash, ...labels } = metadata.labels;
  return { metadata: { labels }, spec };
}

async function createSet(
  client: KubeClient,
  deployment: MachineDeployment,
  old: MachineSet[],
): Promise<MachineSet> {
  const { spec, metadata } = deployment;
  const hash = spec.template.spec.versions.kubelet.replaceAll('.', '-');
  const labels = { ...spec.template.metadata.labels, 'machine-template-hash': hash };
  const room =
    spec.replicas + spec.strategy.rollingUpdate.maxSurge - sum(old, (each) => each.spec.replicas);
  const replicas = Math.max(0, Math.min(room, spec.replicas));
  const template = { ...spec.template, metadata: { labels } };
  return await client.create(machineSets, {
    apiVersion: GROUP,
    kind: 'MachineSet',
    metadata: {
      name: `${metadata.name}-${hash}`,
      namespace,
      labels,
      annotations: metadata.annotations ?? {},
      ownerReferences: [ownerOf(deployment, 'MachineDeployment')],
    },
    spec: { replicas, template, selector: { matchLabels: labels } },
  });
}

function ownerOf({ metadata }: KubeObject, kind: string) {
  return {
    apiVersion: GROUP,
    kind,
    name: metadata.name,
    uid: metadata.uid ?? '',
    controller: true,
  };
}

/**
 * The `scale` of the original. A single active set gets all replicas. If several sets are active, their total is kept
 * within the surge.
 */
async function scalePaused(
  client: KubeClient,
  { spec }: MachineDeployment,
  fresh: MachineSet | undefined,
  old: readonly MachineSet[],
): Promise<void> {
  const active = [...old, ...(fresh ? [fresh] : [])].filter((set) => set.spec.replicas > 0);
  const [only] = active;
  if (only && active.length === 1) return await scale(client, only, spec.replicas);
  const total = sum(active, (set) => set.spec.replicas);
  const room = spec.replicas + spec.strategy.rollingUpdate.maxSurge - total;
  const largest = active.toSorted((a, b) => b.spec.replicas - a.spec.replicas)[0];
  if (largest && room !== 0) await scale(client, largest, largest.spec.replicas + room);
}

async function scaleDown(
  client: KubeClient,
  { spec }: MachineDeployment,
  fresh: MachineSet,
  old: readonly MachineSet[],
  maxUnavailable: number,
): Promise<void> {
  const all = [...old, fresh];
  const least = spec.replicas - maxUnavailable;
  const missing = fresh.spec.replicas - (fresh.status?.availableReplicas ?? 0);
  let room = sum(all, (set) => set.spec.replicas) - least - missing;
  room = Math.min(room, sum(all, ({ status }) => status?.availableReplicas ?? 0) - least);
  for (const set of old) {
    const fewer = Math.min(set.spec.replicas, Math.max(0, room));
    if (fewer > 0) await scale(client, set, set.spec.replicas - fewer);
    room -= fewer;
  }
}

async function scale(client: KubeClient, set: MachineSet, replicas: number): Promise<void> {
  if (set.spec.replicas === replicas) return;
  await client.replace(machineSets, { ...set, spec: { ...set.spec, replicas } }, { namespace });
  set.spec.replicas = replicas;
}

async function reconcileSet(
  client: KubeClient,
  set: MachineSet,
  own: Machine[],
  all: readonly Node[],
): Promise<void> {
  const { spec, metadata } = set;
  const isReady = ({ status }: Machine): boolean =>
    readyCondition(all.find((node) => node.metadata.name === status?.nodeRef?.name))?.status ===
    'True';
  const ready = own.filter(isReady).length;
  // The Machines that are not ready are deleted first.
  const order = own.toSorted((a, b) => Number(isReady(a)) - Number(isReady(b)));
  for (const machine of order.slice(0, Math.max(0, own.length - spec.replicas)))
    await client.delete(machines, machine.metadata.name, { namespace });
  for (let count = own.length; count < spec.replicas; count++)
    await client.create(machines, {
      apiVersion: GROUP,
      kind: 'Machine',
      metadata: {
        name: `${metadata.name}-${crypto.randomUUID().slice(0, 5)}`,
        namespace,
        labels: spec.template.metadata.labels,
        ownerReferences: [ownerOf(set, 'MachineSet')],
      },
      spec: spec.template.spec,
    });
  const replicas = own.length;
  const status = {
    observedGeneration: metadata.generation ?? 0,
    replicas,
    readyReplicas: ready,
    availableReplicas: ready,
  };
  if (sameJson(status, set.status)) return;
  const now = await client.get(machineSets, metadata.name, { namespace });
  await client.replace(machineSets, { ...now, status }, { namespace, subresource: 'status' });
}

async function reconcileMachine(
  client: KubeClient,
  machine: Machine,
  does: ReturnType<MachineController['behaviour']>,
): Promise<void> {
  const { metadata, spec, status } = machine;
  if (status?.nodeRef || status?.errorReason !== undefined || does === 'waits') return;
  const { name } = metadata;
  if (does === 'joins') await client.create(nodes, nodeOf(name, spec.versions.kubelet));
  const failed = { errorReason: 'CreateMachineError', errorMessage: 'the cloud has no room' };
  const seen = does === 'fails' ? failed : { nodeRef: { kind: 'Node', name } };
  await client.replace(machines, { ...machine, status: seen }, { namespace });
}

const OF_MACHINE = 'machine-controller/owned-by';

function readyNow() {
  const now = rfc3339(Date.now());
  return {
    type: 'Ready',
    status: 'True',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  } as const;
}

async function keepReady(client: KubeClient): Promise<void> {
  const { items } = await client.listAll(nodes, { labelSelector: OF_MACHINE });
  const patch = { status: { conditions: [readyNow()] } };
  for (const { metadata } of items)
    await client.patch(nodes, metadata.name, patch, { type: 'strategic', subresource: 'status' });
}

function nodeOf(name: string, kubelet: string): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { [OF_MACHINE]: name } },
    status: {
      nodeInfo: { kubeletVersion: `v${kubelet}` },
      conditions: [readyNow()],
    },
  };
}

async function removeNodes(client: KubeClient, kept: readonly string[]): Promise<void> {
  const { items } = await client.listAll(nodes, { labelSelector: OF_MACHINE });
  for (const { metadata } of items)
    if (!kept.includes(metadata.name)) await ifFound(client.delete(nodes, metadata.name));
}

/** Creates a pool whose Machines all have the version `kubelet`. */
export async function createPool(
  client: KubeClient,
  name: string,
  kubelet: string,
  { replicas = 2, maxSurge = 1, maxUnavailable = 0, paused = false } = {},
): Promise<void> {
  const labels = { pool: name };
  const rollingUpdate = { maxSurge, maxUnavailable };
  await client.create(machineDeployments, {
    apiVersion: GROUP,
    kind: 'MachineDeployment',
    metadata: { name, namespace },
    spec: {
      replicas,
      ...(paused && { paused }),
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { versions: { kubelet } } },
      strategy: { type: 'RollingUpdate', rollingUpdate },
    },
  });
}
