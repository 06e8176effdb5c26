/** Reads from the management cluster how to reach the API server of a Cluster. */
import type { KubeClient } from '../../../kube/client.ts';
import type { ClusterConfig } from '../../../kube/config/cluster-config.ts';
import { parseClusterConfig } from '../../../kube/config/kubeconfig.ts';
import { secrets } from '../../../kube/resources.ts';
import { ifFound } from '../../../kube/status-error.ts';
import { RefitError } from '../../../util/errors.ts';
import { kubeconfigSecretOf } from '../plan/workload-clusters.ts';

/** Resolves with the connection in the Secret that Cluster API writes. Throws REFIT_CONTROL if there is no such Secret. */
export async function workloadConfigOf(
  management: Pick<KubeClient, 'get'>,
  { cluster, namespace }: { readonly cluster: string; readonly namespace: string },
  abort: AbortSignal,
): Promise<ClusterConfig> {
  const name = kubeconfigSecretOf(cluster);
  const secret = await ifFound(management.get(secrets, name, { namespace, abort }));
  if (!secret)
    throw new RefitError(
      'REFIT_CONTROL',
      `there is no Secret ${namespace}/${name}, in which Cluster API stores the kubeconfig of the Cluster`,
      { hint: 'use the kubeconfig of the management cluster' },
    );
  const kubeconfig = Buffer.from(secret.data?.['value'] ?? '', 'base64').toString();
  return await parseClusterConfig(kubeconfig, `Secret ${name}`);
}
