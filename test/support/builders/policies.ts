/** UpgradePolicies for tests. They contain only what the test specifies. */
import type { UpgradePolicy, UpgradePolicySpec } from '../../../src/api/refit/upgrade-policy.ts';

export function buildUpgradePolicy(name: string, spec: UpgradePolicySpec = {}): UpgradePolicy {
  return {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name, uid: `uid-of-${name}`, generation: 1 },
    spec,
  };
}
