/** Remembers which failed hooks of whole plans were reported, so that each failure is reported once. */
import type { Assessment } from '../assess/assess.ts';
import { planHookRuns } from '../gates/hook-runs.ts';
import { because, type Reason } from '../model/reasons.ts';
import { hookFailed } from '../reasons/hook.ts';

/** Returns the failures of the hooks of the whole plan, including those that the policy ignores. */
export function planHookFailures({
  snapshot,
  policy,
}: Pick<Assessment, 'snapshot' | 'policy'>): { readonly id: string; readonly reason: Reason }[] {
  return planHookRuns(snapshot, policy, 'beforePlan', 'afterPlan').flatMap(({ id, hook }) => {
    const result = snapshot.outside.hooks?.find((each) => each.id === id);
    if (result?.state !== 'failed') return [];
    const message = hookFailed(hook, policy, result.message);
    return [
      { id, reason: because('PlanHookFailed', message, { policy: policy.name, hook: hook.name }) },
    ];
  });
}

export function planHookMemory() {
  const reported = new Map<string, ReadonlySet<string>>();
  return {
    /** Returns the failures that were not reported yet. */
    at(key: string, assessment: Assessment): Reason[] {
      const failures = planHookFailures(assessment);
      const known = reported.get(key);
      reported.set(key, new Set(failures.map(({ id }) => id)));
      return failures.filter(({ id }) => known?.has(id) !== true).map(({ reason }) => reason);
    },
    forget: (key: string) => reported.delete(key),
  };
}
