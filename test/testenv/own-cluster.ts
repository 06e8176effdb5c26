/** Starts a cluster of the sandbox on the borrowed control plane. Its directory is removed when the cluster stops. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Cluster, type ClusterOptions, startCluster } from '../../sandbox/cluster/cluster.ts';
import { controlPlane, kubeconfigFor } from './control-plane.ts';

export async function startOwnCluster(
  options: Omit<ClusterOptions, 'plane' | 'directory'>,
): Promise<Cluster> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-cluster-'));
  const plane = { url: controlPlane().url, kubeconfig: kubeconfigFor };
  const cluster = await startCluster({ ...options, plane, directory });
  return {
    ...cluster,
    async stop() {
      await cluster.stop();
      await rm(directory, { recursive: true });
    },
  };
}
