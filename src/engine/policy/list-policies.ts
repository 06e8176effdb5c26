/** Owns reading UpgradePolicies where the cluster need not have the kind. */
import { type UpgradePolicy, upgradePolicies } from '../../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/status-error.ts';

/** Undefined where the cluster lacks the kind. Rejects for whoever may not see them: they would bind all the same. */
export async function listPolicies(client: KubeClient, abort: AbortSignal): Promise<UpgradePolicy[] | undefined> {
  try {
    return (await client.listAll(upgradePolicies, { abort })).items;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
