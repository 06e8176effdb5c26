/**
 * A cluster with Nodes, for tests of the hooks. By default it has a leader, every API server is ready, and no Node was
 * seen before.
 */
import type { NodeCluster } from '../../../src/dialects/capi/plan/progress.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { buildPolicy } from '../builders/rollout-policies.ts';

export function buildNodeCluster(
  workload: KubeClient,
  more: Partial<NodeCluster> = {},
): NodeCluster {
  return {
    workload,
    seenNode: () => undefined,
    seenNodes: () => [],
    policyFor: () => buildPolicy(),
    whyIdle: () => undefined,
    askApiServers: async () => await Promise.resolve([]),
    ...more,
  };
}
