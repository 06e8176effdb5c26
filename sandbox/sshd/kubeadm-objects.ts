/** Creates, keeps and removes the objects that a stand-in kubeadm cluster has in the API. */
import { stringify } from 'yaml';
import { PLACE } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import {
  type Condition,
  type ConfigMap,
  configMaps,
  leases,
  namespaces,
  nodes,
  pods,
} from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { createMissing } from '../cluster/objects.ts';
import { COMPONENTS, ETCD, type StandInHost } from './stand-in-host.ts';

/** Much less than the 50 s after which the controller manager marks a node without heartbeats as NotReady. */
const HEARTBEAT_MS = 10_000;

/** Creates the objects that `kubeadm init` leaves in the API, as far as an upgrade reads them. */
export async function furnish(
  client: KubeClient,
  version: string,
  kubeletConfiguration: object,
): Promise<void> {
  const { namespace } = PLACE;
  await createMissing(client, namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  });
  const configuration = {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'ClusterConfiguration',
    kubernetesVersion: version,
    networking: { serviceSubnet: '10.96.0.0/12' },
  };
  const kubelet = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    ...kubeletConfiguration,
  };
  for (const [name, data] of [
    ['kubeadm-config', { ClusterConfiguration: stringify(configuration) }],
    ['kubelet-config', { kubelet: stringify(kubelet) }],
  ] as const) {
    const config: ConfigMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace },
      data,
    };
    await client.create(configMaps, config, { namespace });
  }
}

/** Creates a Node that is Ready from the start. kwok would also make it Ready, but with another address. */
export async function registerNode(
  client: KubeClient,
  { name, role }: StandInHost,
  { version, address, played }: { version: string; address: string; played: boolean },
): Promise<void> {
  const { metadata, status } = simulatedNode(name);
  const { annotations, labels } = metadata;
  const roleLabels = role === 'controlPlane' ? { 'node-role.kubernetes.io/control-plane': '' } : {};
  const room = { cpu: '8', memory: '16Gi', pods: '110' };
  const space = { capacity: room, allocatable: room };
  await client.create(nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { ...labels, ...roleLabels }, ...(played ? { annotations } : {}) },
    status: {
      nodeInfo: { ...status?.nodeInfo, kubeletVersion: version },
      addresses: [{ type: 'InternalIP', address }],
      conditions: [readyNow()],
      ...space,
    },
  });
}

/** Creates the mirror Pods of the control plane, as a kubelet does for each manifest. */
export async function registerStaticPods(
  client: KubeClient,
  node: string,
  version: string,
): Promise<void> {
  const { namespace } = PLACE;
  for (const component of COMPONENTS) {
    const image = `registry.local:5000/${component}:${component === 'etcd' ? ETCD : version}`;
    const name = `${component}-${node}`;
    const labels = { component, tier: 'control-plane' };
    const metadata = {
      name,
      namespace,
      labels,
      annotations: { 'kubernetes.io/config.mirror': '1' },
    };
    const spec = { nodeName: node, hostNetwork: true, containers: [{ name: component, image }] };
    await client.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec }, { namespace });
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await client.patch(pods, name, { status }, { namespace, type: 'merge', subresource: 'status' });
  }
}

async function reportReady(client: KubeClient, name: string): Promise<void> {
  const status = { conditions: [readyNow()] };
  await client.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
}

function readyNow(): Condition & { lastHeartbeatTime: string } {
  const now = rfc3339(systemClock.now());
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' } as const;
  return { ...ready, lastHeartbeatTime: now, lastTransitionTime: now };
}

/** Keeps the Nodes Ready until it is disposed, as kubelets do. A heartbeat that fails is not repeated. */
export function keepReady(client: KubeClient, hosts: readonly StandInHost[]): Disposable {
  const beat = (): void => {
    for (const { name } of hosts) void reportReady(client, name).catch(() => undefined);
  };
  const timer = setInterval(beat, HEARTBEAT_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Removes the objects that the functions above and an upgrade have created. Ignores objects that no longer exist. */
export async function removeObjects(
  client: KubeClient,
  hosts: readonly StandInHost[],
): Promise<void> {
  for (const { name, role } of hosts) {
    await gone(client.delete(nodes, name));
    for (const each of role === 'controlPlane' ? COMPONENTS : [])
      await gone(
        client.delete(pods, `${each}-${name}`, {
          namespace: PLACE.namespace,
          gracePeriodSeconds: 0,
        }),
      );
  }
  for (const name of [PLACE.name, 'kubeadm-config', 'kubelet-config'])
    await gone(client.delete(configMaps, name, { namespace: PLACE.namespace }));
  await gone(client.delete(leases, PLACE.name, { namespace: PLACE.namespace }));
}

async function gone(deletion: Promise<void>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
