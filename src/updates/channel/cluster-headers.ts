/** What an update server is told about the cluster, in the headers of k0s. Nothing is sent unless somebody asks for it. */
import { arch } from 'node:process';
import type { KubeClient } from '../../kube/client.ts';
import { type Node, namespaces, nodes } from '../../kube/resources.ts';
import { controlNodes } from '../../signal/names.ts';

/** What the API does not say. */
export interface ClusterInfo {
  /** Such as `etcd`. */
  readonly storage: string;
  /** Such as `kuberouter`. */
  readonly network: string;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

export interface Asking {
  readonly client: KubeClient;
  readonly abort: AbortSignal;
}

/** UID of the namespace `kube-system`. */
export async function clusterIdOf({ client, abort }: Asking): Promise<string> {
  return (await client.get(namespaces, 'kube-system', { abort })).metadata.uid ?? '';
}

/** Spelt as Go sends them, underscores included. */
export async function clusterHeaders({ client, abort }: Asking, { storage, network }: ClusterInfo, version: string) {
  const [clusterId, controllers, workers] = await Promise.all([
    clusterIdOf({ client, abort }),
    client.listAll(controlNodes, { abort }),
    client.listAll(nodes, { abort }),
  ]);
  const data = workerData(workers.items);
  return {
    K0s_arch: ARCHITECTURES[arch] ?? arch,
    K0s_clusterid: `kube-system:${clusterId}`,
    K0s_cniprovider: network,
    K0s_controlplanenodescount: String(controllers.items.length),
    K0s_storagetype: storage,
    K0s_version: version,
    K0s_workerdata: Buffer.from(JSON.stringify(data)).toString('base64'),
  };
}

function workerData(all: readonly Node[]): Record<string, Record<string, number>> {
  return {
    Archs: counts(all.map(({ status }) => status?.nodeInfo?.architecture)),
    OSes: counts(all.map(({ status }) => status?.nodeInfo?.osImage)),
    Runtimes: counts(all.map(({ status }) => status?.nodeInfo?.containerRuntimeVersion)),
  };
}

function counts(values: readonly (string | undefined)[]): Record<string, number> {
  const groups = Map.groupBy(values, (value) => value ?? '');
  return Object.fromEntries([...groups].map(([value, all]) => [value, all.length]));
}
