/**
 * A leader that leaves cordoning to the nodes, as the leaders before k0s 1.35 do. It consists only of a Lease, because
 * a node observes only the Lease of a leader.
 */

import { createMissing } from '../../sandbox/cluster/objects.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { leases, namespaces } from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import { microTime } from '../../src/util/clock.ts';

const NAMESPACE = 'k0s-autopilot';
const NAME = 'k0s-autopilot-controller';
const DAY_S = 86_400;

/**
 * Replaces the Lease of the current leader with the Lease of a silent leader. The returned value deletes the new Lease
 * when it is disposed. Until then, other leaders wait for this Lease.
 */
export async function electSilentLeader(client: KubeClient): Promise<AsyncDisposable> {
  await createMissing(client, namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: NAMESPACE },
  });
  await retire(client);
  await client.create(leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: NAME, namespace: NAMESPACE },
    spec: {
      holderIdentity: 'somebody',
      leaseDurationSeconds: DAY_S,
      renewTime: microTime(Date.now()),
    },
  });
  return { [Symbol.asyncDispose]: async () => await retire(client) };
}

async function retire(client: KubeClient): Promise<void> {
  await client.delete(leases, NAME, { namespace: NAMESPACE }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}
