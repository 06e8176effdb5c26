/** Writes the label on a node's own Lease that allows the leader to cordon the node. */
import type { KubeClient } from '../../../../src/kube/client.ts';
import { leases } from '../../../../src/kube/resources.ts';
import { isInvalid } from '../../../../src/kube/status-error.ts';
import { CENTRAL_CORDONING_LABEL } from '../../../../src/signal/names.ts';

const NAMESPACE = 'kube-node-lease';

/**
 * Makes the Lease if it does not exist, and then sets its holder. The kubelet does not set the holder of a Lease that
 * it did not make.
 */
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
