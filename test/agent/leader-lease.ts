/** Owns a leader that leaves cordoning to the nodes, as those before k0s 1.35: to a node, a leader is its lease. */

import type { KubeClient } from '../../src/kube/client.ts';
import { leases, namespaces } from '../../src/kube/resources.ts';
import { microTime } from '../../src/util/clock.ts';
import { createMissing } from '../../tools/cluster/objects.ts';

const DAY_S = 86_400;

/** Harmless where there is a leader. */
export async function electSilentLeader(client: KubeClient): Promise<void> {
  const namespace = 'k0s-autopilot';
  await createMissing(client, namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'k0s-autopilot-controller', namespace },
    spec: { holderIdentity: 'somebody', leaseDurationSeconds: DAY_S, renewTime: microTime(Date.now()) },
  };
  await createMissing(client, leases, lease);
}
