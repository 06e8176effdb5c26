/** Owns what a campaign over SSH is held to: the UpgradePolicy that covers it, where the cluster has any, or two hours a host. */
import { type UpgradePolicy, upgradePolicies } from '../../api/refit/upgrade-policy.ts';
import { PLACE } from '../../dialects/kubeadm/plan-object.ts';
import { type CampaignPolicy, DEFAULT_POLICY } from '../../engine/policy/campaign-policy.ts';
import { policyFor } from '../../engine/policy/choose-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/status-error.ts';

/** An hour for the drain, and as much for kubeadm: it takes minutes, and waits for up to five for each manifest. */
const HOST_DEADLINE_MS = 2 * 60 * 60 * 1000;
const UNCOVERED: CampaignPolicy = { ...DEFAULT_POLICY, targetDeadlineMs: HOST_DEADLINE_MS };

/** Undefined where the cluster does not have the kind: it is no part of kubeadm. */
export async function listPolicies(client: KubeClient, signal: AbortSignal): Promise<UpgradePolicy[] | undefined> {
  try {
    return (await client.listAll(upgradePolicies, { signal })).items;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

export function policyAmong(policies: readonly UpgradePolicy[]): CampaignPolicy {
  return policyFor(policies, { dialect: 'kubeadm', ...PLACE }, UNCOVERED);
}
