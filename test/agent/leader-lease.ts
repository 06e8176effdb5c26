/** A leader that leaves cordoning to the nodes, as those before k0s 1.35: to a node, a leader is its lease. */

import { createMissing } from '../../sandbox/cluster/objects.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { leases, namespaces } from '../../src/kube/resources.ts';
import { isNotFound } from '../../src/kube/status-error.ts';
import { microTime } from '../../src/util/clock.ts';

const NAMESPACE = 'k0s-autopilot';
const NAME = 'k0s-autopilot-controller';
const DAY_S = 86_400;

/** It leads in the place of whoever led before, and is gone when what is returned is disposed of: others wait for its lease. */
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
