/**
 * Looks ahead at the namespaces in which a policy from a file wants Jobs. For a policy in the cluster, its condition
 * `ResolvedRefs` says what its controller cannot use.
 */
import type { UpgradePolicySpec } from '../api/refit/upgrade-policy.ts';
import { jobPlacesIn } from '../engine/policy/job-namespace-problems.ts';
import { listed } from '../util/phrases.ts';

export interface JobPlaceFindings {
  /** Problems, one sentence each. */
  readonly warnings: readonly string[];
  /** Questions that have no answer, one clause each. */
  readonly unseen: readonly string[];
}

/**
 * Resolves with what prevents the Jobs of the policy. `hasNamespace` rejects if the user has no right to ask. Nobody but
 * the controller knows its rights, so they are always among the questions without an answer.
 */
export async function lookAtJobPlaces(
  spec: UpgradePolicySpec,
  hasNamespace: (name: string) => Promise<boolean>,
): Promise<JobPlaceFindings> {
  const places = jobPlacesIn(spec);
  const names = [...new Set(places.map(({ namespace }) => namespace))];
  if (names.length === 0) return { warnings: [], unseen: [] };
  const answers = await Promise.allSettled(names.map(hasNamespace));
  const named = (isKind: (answer: PromiseSettledResult<boolean>) => boolean): string[] =>
    names.filter((_, index) => {
      const answer = answers[index];
      return answer !== undefined && isKind(answer);
    });
  const missing = named((answer) => answer.status === 'fulfilled' && !answer.value);
  const unknown = named(({ status }) => status === 'rejected');
  const warnings = places
    .filter(({ namespace }) => missing.includes(namespace))
    .map(
      ({ field, namespace }) =>
        `spec.${field}: the cluster has no namespace ${namespace}, so the controller cannot create the Job. Create the namespace before you apply the plan`,
    );
  const rights = `whether the controller has the right to create the Jobs of the policy: apply the policy before the plan, and its condition ResolvedRefs says so`;
  const asked =
    unknown.length === 0 ? [] : [`whether the cluster has the namespaces ${listed(unknown)}`];
  return { warnings, unseen: [...asked, rights] };
}
