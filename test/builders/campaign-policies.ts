/** Owns policies for tests: the default, with two hours for each target unless told otherwise. */
import { type CampaignPolicy, DEFAULT_POLICY } from '../../src/engine/policy/campaign-policy.ts';
import { HOUR } from './times.ts';

export function buildPolicy(more: Partial<CampaignPolicy> = {}): CampaignPolicy {
  return { ...DEFAULT_POLICY, targetDeadlineMs: 2 * HOUR, ...more };
}
