/**
 * Checks whether the API servers of a new version may reach the kubelets. kubeadm gives them this right when it upgrades a
 * control plane, and Cluster API never lets it do so, because it replaces Machines.
 */
import type { Node } from '../../../kube/resources.ts';
import type { Asking } from '../../../ready/asking.ts';
import type { FoundBy } from '../../../ready/finding.ts';
import { parseVersion } from '../../../util/version.ts';
import { API_SERVER_NEEDS_KUBELET_RIGHTS } from '../../../versions/data/by-hand.ts';

/** Cluster API writes into this annotation of a Node what owns its Machine. */
const OWNER_KIND = 'cluster.x-k8s.io/owner-kind';
/** The name in the certificate with which an API server connects to kubelets. */
const USER = 'kube-apiserver-kubelet-client';

/** Resolves with a finding if kubeadm made the control plane for Cluster API, and its API servers lack the right in `to`. */
export async function kubeletRights(
  all: readonly Node[],
  { allows }: Pick<Asking, 'allows'>,
  to: string,
): Promise<FoundBy[]> {
  const isOurs = all.some(
    ({ metadata }) => metadata.annotations?.[OWNER_KIND] === 'KubeadmControlPlane',
  );
  if (!isOurs || !needsRights(to)) return [];
  const object = `User ${USER}`;
  const access = { verb: 'get', group: '', resource: 'nodes', subresource: 'proxy' };
  const asked = await allows(USER, access);
  if (asked.kind === 'unknown')
    return [
      {
        state: 'unknown',
        object,
        message: `whether API servers of ${to} may reach kubelets: ${asked.why}`,
      },
    ];
  if (asked.value) return [];
  return [
    {
      state: 'warning',
      object,
      message: `API servers of ${to} reach kubelets as this user, which may not get nodes/proxy: if Cluster API does not give it the right, the rollout of the control plane stops after the first Machine`,
      cure: 'use Cluster API v1.11.11, v1.12.8, v1.13.2 or later, or bind the user to the ClusterRole system:kubelet-api-admin in the workload cluster',
    },
  ];
}

function needsRights(to: string): boolean {
  const { major = 0, minor = 0, patch = 0 } = parseVersion(to) ?? {};
  const known = [...API_SERVER_NEEDS_KUBELET_RIGHTS.keys()];
  if (major !== 1 || minor > Math.max(...known)) return major >= 1;
  const first = API_SERVER_NEEDS_KUBELET_RIGHTS.get(minor);
  return first !== undefined && patch >= first;
}
