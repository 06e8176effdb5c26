/** Owns what a campaign over SSH is held to: the UpgradePolicy that covers it, or else two hours for each host. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { type CampaignPolicy, DEFAULT_POLICY } from '../../engine/policy/campaign-policy.ts';
import { policyFor } from '../../engine/policy/choose-policy.ts';
import { PLACE } from './plan-object.ts';

/** Milliseconds: an hour for the drain, and as much for kubeadm, which takes minutes and waits for up to five for each manifest. */
export const HOST_DEADLINE_MS = 2 * 60 * 60 * 1000;

export function policyAmong(policies: readonly UpgradePolicy[]): CampaignPolicy {
  const uncovered = { ...DEFAULT_POLICY, targetDeadlineMs: HOST_DEADLINE_MS };
  return policyFor(policies, { dialect: 'kubeadm', ...PLACE }, uncovered);
}
