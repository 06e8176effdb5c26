/** The objects of a stand-in cluster: CRDs, the namespace of the lease, ControlNodes, Nodes and the example Plan. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Plan } from '../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
  type KubeObject,
  leases,
  namespaces,
  nodes,
  type Resource,
} from '../../src/kube/resources.ts';
import { ifFound, isAlreadyExists, isNotFound } from '../../src/kube/status-error.ts';
import { tryList } from '../../src/kube/try-list.ts';
import { type ControlNode, controlNodes, MODE_ANNOTATION } from '../../src/signal/names.ts';
import { type Clock, rfc3339, sleep, systemClock } from '../../src/util/clock.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';

const CRD_DIRECTORY = join(import.meta.dirname, '..', '..', 'deploy', 'crds');
const POLL_MS = 50;

/** The definitions are read only once, because a process may start many clusters. */
let read: Promise<readonly CustomResourceDefinition[]> | undefined;

async function readDefinitions(): Promise<readonly CustomResourceDefinition[]> {
  const files = (await readdir(CRD_DIRECTORY)).filter((file) => file.endsWith('.yaml'));
  const texts = await Promise.all(
    files.map(async (file) => await readFile(join(CRD_DIRECTORY, file), 'utf8')),
  );
  return texts.map((text) => parse(text) as CustomResourceDefinition);
}

/** Creates what is missing, and waits until the API server serves every kind. For a new kind this takes seconds. */
export async function installDefinitions(
  client: KubeClient,
  clock: Clock,
  abort?: AbortSignal,
): Promise<void> {
  read ??= readDefinitions();
  const definitions = await read;
  const missing: CustomResourceDefinition[] = [];
  // It is cheap to ask whether a kind is served. To refuse an existing definition, the API server would first check all
  // of it.
  for (const definition of definitions)
    if (!(await isServed(client, kindOf(definition)))) missing.push(definition);
  for (const definition of missing)
    await createMissing(client, customResourceDefinitions, definition);
  await createMissing(client, namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'k0s-autopilot' },
  });
  for (const definition of missing) await untilServed(client, kindOf(definition), clock, abort);
}

function kindOf({ spec: { group, names, scope, versions } }: CustomResourceDefinition): Resource {
  const version = versions.find(({ served }) => served)?.name ?? '';
  return {
    group,
    version,
    kind: names.kind,
    plural: names.plural,
    namespaced: scope === 'Namespaced',
  };
}

/** Waits until the API server serves the kind. */
export async function untilServed(
  client: KubeClient,
  resource: Resource,
  clock: Clock,
  abort?: AbortSignal,
): Promise<void> {
  while (!(await isServed(client, resource))) await sleep(clock, POLL_MS, abort);
}

async function isServed(client: KubeClient, resource: Resource): Promise<boolean> {
  return (await ifFound(tryList(client, resource))) === true;
}

export async function createMissing(
  client: KubeClient,
  resource: Resource,
  object: KubeObject,
): Promise<void> {
  try {
    await client.create(resource, object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

const PLATFORM = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };

/**
 * Creates the object with which k0s registers a controller. `address` is the address at which its API server is asked
 * for `/readyz`.
 */
export async function createControlNode(
  client: KubeClient,
  name: string,
  address: string,
  mode: 'controller' | 'controller+worker' = 'controller',
): Promise<void> {
  const created = await client.create(controlNodes, {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: {
      name,
      labels: { 'kubernetes.io/hostname': name, ...PLATFORM },
      annotations: { [MODE_ANNOTATION]: mode },
    },
  });
  const addresses = [
    { type: 'InternalIP', address },
    { type: 'Hostname', address: name },
  ];
  const status: ControlNode['status'] = { addresses };
  await client.replace(controlNodes, { ...created, status }, { subresource: 'status' });
}

/** Creates the Node of a worker, as its kubelet does. */
export async function createNode(
  client: KubeClient,
  name: string,
  labels: Record<string, string>,
): Promise<void> {
  await client.create(nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...PLATFORM, ...labels } },
    status: { conditions: [notReadyYet()] },
  });
}

/**
 * Returns the condition of a kubelet that has just started. Without it, the controller manager counts from the last
 * heartbeat of an earlier Node with this name. Then it would set the new Node to Unknown at once.
 */
function notReadyYet() {
  const now = rfc3339(systemClock.now());
  const reason = { reason: 'KubeletNotReady', message: 'container runtime network not ready' };
  return {
    type: 'Ready',
    status: 'False',
    ...reason,
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  } as const;
}

/**
 * Creates a Node on which kwok simulates pods. The Node has capacity for them from the start, because kwok sets a
 * capacity only for a Node that is not Ready.
 */
export async function createPlayedNode(
  client: KubeClient,
  name: string,
  labels: Record<string, string>,
  version: string,
): Promise<void> {
  const { metadata, ...rest } = simulatedNode(name);
  const room = { cpu: '8', memory: '16Gi', pods: '110' };
  const nodeInfo = { ...rest.status?.nodeInfo, kubeletVersion: kubernetesPartOf(version) };
  const status = {
    ...rest.status,
    nodeInfo,
    capacity: room,
    allocatable: room,
    conditions: [notReadyYet()],
  };
  await client.create(nodes, {
    ...rest,
    metadata: { ...metadata, labels: { ...metadata.labels, ...labels } },
    status,
  });
}

/** Deletes the objects that the functions above and the agents have created. */
export async function deleteObjects(client: KubeClient, name: string): Promise<void> {
  for (const [resource, namespace] of [
    [controlNodes],
    [nodes],
    [leases, 'kube-node-lease'],
  ] as const) {
    await client.delete(resource, name, { namespace }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
}

/**
 * Reports that the node is Ready and runs `version`, as its kubelet does every few seconds. `reported` is the version that the
 * kubelet itself reports; by default it is that of a kubelet of k0s.
 */
export async function reportReady(
  client: KubeClient,
  name: string,
  version: string,
  now: string,
  reported = kubernetesPartOf(version),
): Promise<void> {
  const at = { message: '', lastHeartbeatTime: now, lastTransitionTime: now };
  const pressure = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];
  const conditions = [
    ...pressure.map((type) => ({
      type,
      status: 'False',
      reason: 'KubeletHasSufficientResources',
      ...at,
    })),
    { type: 'Ready', status: 'True', reason: 'KubeletReady', ...at },
  ];
  const patch = { status: { conditions, nodeInfo: { kubeletVersion: reported } } };
  await client.patch(nodes, name, patch, { type: 'merge', subresource: 'status' });
}

export interface ExamplePlan {
  readonly id: string;
  readonly version: string;
  readonly url: string;
  readonly sha256: string;
  readonly controllers: readonly string[];
  readonly workerSelector: { readonly labels: string; readonly fields?: string };
  readonly concurrent: number;
}

/** A Plan of the documented shape: controllers by name, workers by selector. */
export function examplePlan(example: ExamplePlan): Plan {
  const { id, version, url, sha256, controllers, workerSelector, concurrent } = example;
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'Plan',
    metadata: { name: 'autopilot' },
    spec: {
      id,
      timestamp: 'now',
      commands: [
        {
          k0supdate: {
            version,
            platforms: { 'linux-amd64': { url, sha256 } },
            targets: {
              controllers: { discovery: { static: { nodes: [...controllers] } } },
              workers: { limits: { concurrent }, discovery: { selector: workerSelector } },
            },
          },
        },
      ],
    },
  };
}
