/**
 * Warns about Jobs of a policy whose namespace the administrator must list. The commands do not know the options of the
 * controller.
 */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { jobPlacesIn } from '../engine/policy/job-namespace-problems.ts';
import { isAllowedByDefault } from '../kube/job-namespaces.ts';

/** Returns a warning for each Job that a controller without a list of its own refuses. */
export function unlistedJobs(spec: UpgradePolicySpec): string[] {
  return jobPlacesIn(spec)
    .filter(({ namespace }) => !isAllowedByDefault(namespace))
    .map(
      ({ field, namespace }) =>
        `spec.${field}: no node starts under this policy unless the controller may run Jobs of policies in the namespace ${namespace}. An administrator lists the namespace in --job-namespaces of the controller, or in hooks.jobs or health.jobs of the chart`,
    );
}
