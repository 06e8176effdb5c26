/** Finds the hooks and health checks of a policy whose Jobs may not run in their namespace. */
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import type { JobNamespaces } from '../../kube/job-namespaces.ts';
import type { Complain } from './read-time.ts';

/** The field with the namespace of a Job, without `spec.`, and the namespace. */
interface JobPlace {
  readonly field: string;
  readonly namespace: string;
}

/** Returns the places of all Jobs of the policy. */
export function jobPlacesIn({ hooks = [], health }: UpgradePolicySpec): JobPlace[] {
  return [
    ...hooks.flatMap(({ job }, index) =>
      job ? [{ field: `hooks[${index}].job.namespace`, namespace: job.namespace }] : [],
    ),
    ...(health?.jobs ?? []).map(({ namespace }, index) => ({
      field: `health.jobs[${index}].namespace`,
      namespace,
    })),
  ];
}

export function checkJobPlaces(
  spec: UpgradePolicySpec,
  namespaces: JobNamespaces,
  complain: Complain,
): void {
  for (const { field, namespace } of jobPlacesIn(spec)) {
    const refusal = namespaces.refusalOf(namespace);
    if (refusal === undefined) continue;
    complain(field, `a namespace in which Jobs of policies may run (${refusal})`, namespace);
  }
}
