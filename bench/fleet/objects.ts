/** Creates the objects of a large cluster: Nodes as large as those of real clusters, their Leases, and controllers. */

import { controllerAddress } from '../../sandbox/cluster/hosts.ts';
import type { Lease, Node } from '../../src/kube/resources.ts';
import {
  CENTRAL_CORDONING_LABEL,
  type ControlNode,
  MODE_ANNOTATION,
} from '../../src/signal/names.ts';

/**
 * The number of images that a Node lists. A kubelet lists at most 50 images, and a small worker has about 20. The
 * images are two thirds of the size of a Node.
 */
export const IMAGES = 20;
const PLATFORM = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };

/** Returns a Node that has about 7 KiB of JSON. */
export function workerNode(index: number, version: string, now: string): Node {
  const name = workerName(index);
  const address = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
  const resources = {
    cpu: '8',
    'ephemeral-storage': '101430960Ki',
    memory: '32780112Ki',
    pods: '110',
  };
  const status = {
    addresses: [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: name },
    ],
    capacity: resources,
    allocatable: resources,
    conditions: CONDITIONS.map(([type, value, reason, message]) => ({
      type,
      status: value,
      reason,
      message,
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    })),
    images: Array.from({ length: IMAGES }, (_, image) => imageOf(image)),
    nodeInfo: nodeInfoOf(index, version),
  };
  const labels = {
    ...PLATFORM,
    'beta.kubernetes.io/arch': 'amd64',
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/hostname': name,
    'node.k0sproject.io/role': 'worker',
    'topology.kubernetes.io/region': 'eu-1',
    'topology.kubernetes.io/zone': `eu-1${'abc'[index % 3]}`,
  };
  const annotations = {
    'node.alpha.kubernetes.io/ttl': '300',
    'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
    'projectcalico.org/IPv4Address': `${address}/16`,
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels, annotations },
    spec: {},
    status,
  };
}

export function workerName(index: number): string {
  return `worker-${String(index).padStart(5, '0')}.fleet.example.com`;
}

/** Returns the Lease of a node of k0s 1.35 or later. Its label says that the leader may cordon and drain the node. */
export function nodeLease(name: string): Lease {
  const labels = { [CENTRAL_CORDONING_LABEL]: '' };
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease', labels },
    spec: { holderIdentity: name },
  };
}

/** Returns a ControlNode without workloads. At its address, the API server in memory listens for this controller. */
export function controlNode(index: number, version: string): ControlNode {
  const name = controllerName(index);
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: { name, labels: PLATFORM, annotations: { [MODE_ANNOTATION]: 'controller' } },
    status: {
      addresses: [{ type: 'InternalIP', address: controllerAddress(index + 1) }],
      k0sVersion: version,
    },
  };
}

export function controllerName(index: number): string {
  return `controller-${index}`;
}

const CONDITIONS = [
  [
    'MemoryPressure',
    'False',
    'KubeletHasSufficientMemory',
    'kubelet has sufficient memory available',
  ],
  ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
  ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
  ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
] as const;

function imageOf(image: number): object {
  const repository = `registry.example.com/platform/component-${image}`;
  const digest = image.toString(16).padStart(2, '0').repeat(32);
  return {
    names: [`${repository}@sha256:${digest}`, `${repository}:v1.${image}.0`],
    sizeBytes: 1_000_000 * (image + 1),
  };
}

function nodeInfoOf(index: number, version: string): Record<string, string> {
  const id = index.toString(16).padStart(32, '0');
  return {
    architecture: 'amd64',
    bootID: id,
    containerRuntimeVersion: 'containerd://1.7.27',
    kernelVersion: '6.12.0',
    kubeProxyVersion: '',
    kubeletVersion: version,
    machineID: id,
    operatingSystem: 'linux',
    osImage: 'Debian GNU/Linux 13 (trixie)',
    systemUUID: id,
  };
}
