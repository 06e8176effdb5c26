/** Owns the mark on a node's own lease that lets the leader cordon the node. */
import type { KubeClient } from '../../kube/client.ts';
import { leases } from '../../kube/resources.ts';
import { isInvalid } from '../../kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL } from '../../signal/names.ts';

export const NODE_LEASES = 'kube-node-lease';
/** The original's, so that the label has one owner, whoever of the two writes it. */
const FIELD_MANAGER = 'k0s/autopilot';

/** Harmless when repeated; rejects where the server cannot be reached or refuses. */
export async function stampNodeLease(client: KubeClient, name: string, abort: AbortSignal): Promise<void> {
  const options = { namespace: NODE_LEASES, abort, fieldManager: FIELD_MANAGER };
  const mark = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: NODE_LEASES, labels: { [CENTRAL_CORDONING_LABEL]: '' } },
  };
  const lease = await client.patch(leases, name, mark, { ...options, type: 'apply', force: true });
  if (lease.spec?.holderIdentity) return;
  // A kubelet fills the holder only into leases that it created, and this one may be ours.
  const { resourceVersion } = lease.metadata;
  const untouched = { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion };
  const holder = { op: 'add', path: '/spec/holderIdentity', value: name };
  try {
    await client.patch(leases, name, [untouched, holder], { ...options, type: 'json' });
  } catch (error) {
    // The kubelet was quicker.
    if (!isInvalid(error)) throw error;
  }
}
