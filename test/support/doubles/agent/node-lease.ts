/** The mark on a node's own lease which says that the node lets the leader cordon it. */
import type { KubeClient } from '../../../../src/kube/client.ts';
import { leases } from '../../../../src/kube/resources.ts';
import { isInvalid } from '../../../../src/kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL } from '../../../../src/signal/names.ts';

const NAMESPACE = 'kube-node-lease';

/** Makes the lease where there is none, and then names its holder, as kubelet does not for a lease that it did not make. */
export async function stampNodeLease(client: KubeClient, name: string): Promise<void> {
  const own = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: NAMESPACE, labels: { [CENTRAL_CORDONING_LABEL]: '' } },
  };
  const apply = {
    namespace: NAMESPACE,
    type: 'apply',
    fieldManager: 'k0s/autopilot',
    force: true,
  } as const;
  await client.patch(leases, name, own, apply);
  const path = '/spec/holderIdentity';
  const holder = [
    { op: 'test', path, value: null },
    { op: 'add', path, value: name },
  ];
  await client
    .patch(leases, name, holder, { namespace: NAMESPACE, type: 'json' })
    .catch((error: unknown) => {
      if (!isInvalid(error)) throw error;
    });
}
