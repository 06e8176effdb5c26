/** What an update server is told about the cluster, in the headers of k0s. Nothing is sent unless somebody asks for it. */
import { arch } from 'node:process';
import type { Reading } from '../../kube/client.ts';
import { namespaces } from '../../kube/resources.ts';
import { listNodes } from '../../kube/trimmed.ts';
import { controlNodes } from '../../signal/names.ts';

/** What the API does not say. */
export interface ClusterInfo {
  /** Such as `etcd`. */
  readonly storage: string;
  /** Such as `kuberouter`. */
  readonly network: string;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

export async function clusterIdOf({ client, abort }: Reading): Promise<string> {
  return (await client.get(namespaces, 'kube-system', { abort })).metadata.uid ?? '';
}

/** Spelt as Go sends them, underscores included. */
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
