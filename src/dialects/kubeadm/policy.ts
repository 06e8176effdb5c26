/** Owns how long one host may take, where no UpgradePolicy says so. */

import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import type { KubeObject } from '../../kube/types.ts';

/** Milliseconds: an hour for the drain, and as much for kubeadm, which takes minutes and waits for up to five for each manifest. */
export const HOST_DEADLINE_MS = 2 * 60 * 60 * 1000;

export function policyOf(_plan: KubeObject, policy: RolloutPolicy): RolloutPolicy {
  return policy.name === undefined ? { ...policy, targetDeadlineMs: HOST_DEADLINE_MS } : policy;
}
