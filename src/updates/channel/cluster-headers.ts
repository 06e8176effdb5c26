/** Builds the headers that describe the cluster to an update server, as k0s does. They are sent only if the user asks for it. */
import { arch } from 'node:process';
import type { Reading } from '../../kube/client.ts';
import { namespaces } from '../../kube/resources.ts';
import { listNodes } from '../../kube/trimmed.ts';
import { controlNodes } from '../../signal/names.ts';

/** Facts about the cluster that the API does not have, so the user provides them. */
export interface ClusterInfo {
  /** The storage of the cluster, such as `etcd`. */
  readonly storage: string;
  /** The network of the cluster, such as `kuberouter`. */
  readonly network: string;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

export async function clusterIdOf({ client, abort }: Reading): Promise<string> {
  return (await client.get(namespaces, 'kube-system', { abort })).metadata.uid ?? '';
}

/** Resolves with the headers. Their names are spelt as Go sends them, including underscores. */
export async function clusterHeaders(
  { client, abort }: Reading,
  { storage, network }: ClusterInfo,
  version: string,
) {
  const [clusterId, controllers, workers] = await Promise.all([
    clusterIdOf({ client, abort }),
    client.listAll(controlNodes, { abort }),
    listNodes(client, { abort }),
  ]);
  const infos = workers.items.map(({ status }) => status?.nodeInfo);
  const data = {
    Archs: counts(infos.map((info) => info?.architecture)),
    OSes: counts(infos.map((info) => info?.osImage)),
    Runtimes: counts(infos.map((info) => info?.containerRuntimeVersion)),
  };
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

function counts(values: readonly (string | undefined)[]): Record<string, number> {
  const groups = Map.groupBy(values, (value) => value ?? '');
  return Object.fromEntries([...groups].map(([value, all]) => [value, all.length]));
}
