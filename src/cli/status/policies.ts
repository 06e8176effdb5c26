/** Finds the UpgradePolicy of a plan, as far as the user may see it. */
import { type UpgradePolicy, upgradePolicies } from '../../api/refit/upgrade-policy.ts';
import type { Dialect } from '../../engine/dialect.ts';
import { policyOfPlan } from '../../engine/policy/plan-policy.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isForbidden, isNotFound } from '../../kube/status-error.ts';
import type { KubeObject } from '../../kube/types.ts';
import { createInformer } from '../../kube/watch/informer.ts';
import { messageOf } from '../../util/errors.ts';

export interface Policies {
  list(): readonly UpgradePolicy[];
  /** Why policies cannot be read, if there may be some. */
  readonly unseen?: string;
}

const NO_POLICIES: Policies = { list: () => [] };

/** For plans without a policy: the controller's `--target-deadline` is not visible here; steps have the default deadlines. */
const UNCOVERED: RolloutPolicy = { ...DEFAULT_POLICY, targetDeadlineMs: Number.POSITIVE_INFINITY };

/** A cluster without the kind has none. */
export async function loadPolicies(client: KubeClient, abort: AbortSignal): Promise<Policies> {
  try {
    const { items } = await client.listAll(upgradePolicies, { abort });
    return { list: () => items };
  } catch (error) {
    if (isNotFound(error)) return NO_POLICIES;
    if (isForbidden(error)) return { list: () => [], unseen: `policies: ${messageOf(error)}` };
    throw error;
  }
}

/** Follows them until `abort`; if `first` could not read them, nothing is followed. */
export async function followPolicies(
  client: KubeClient,
  first: Policies,
  abort: AbortSignal,
  onChange: () => void,
): Promise<Policies> {
  if (first === NO_POLICIES || first.unseen !== undefined) return first;
  const informer = createInformer(client, upgradePolicies);
  void informer.run(abort);
  await informer.whenSynced(abort);
  informer.addHandler({ added: onChange, updated: onChange, deleted: onChange });
  return { list: () => informer.list() };
}

export function policyOf(
  policies: Policies,
  dialect: Pick<Dialect, 'name' | 'planRules'>,
  plan: KubeObject,
): RolloutPolicy {
  return policyOfPlan(dialect, policies.list(), plan, UNCOVERED);
}
