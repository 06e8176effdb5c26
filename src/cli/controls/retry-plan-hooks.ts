/** Runs the hooks of a whole plan again, for `refit retry` with the name of the plan. */
import { failedPlanHooks, planHookRuns } from '../../engine/gates/hook-runs.ts';
import { RETRY_HOOKS_ANNOTATION } from '../../engine/model/controls.ts';
import { rfc3339 } from '../../util/clock.ts';
import { failing } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import type { Inspection } from '../status/observe.ts';
import { isNamed } from '../status/plan-names.ts';
import { titleOf } from '../status/text.ts';
import type { ControlledPlan, PlanChange } from './control.ts';

/** Returns true if `name` names the plan, and one of its hooks for the whole plan has failed. */
export function isPlanWithFailedHook(plan: Inspection, name: string): boolean {
  return isNamed(plan, name) && failedPlanHooks(plan.snapshot, plan.policy).length > 0;
}

/**
 * Returns the change that runs the hooks again; undefined if the policy has no hooks for the whole plan. Throws REFIT_CONTROL if none of
 * them has failed, or if the plan was aborted.
 */
export function retryPlanHooks(controlled: ControlledPlan, now: number): PlanChange | undefined {
  const { snapshot, policy, view } = controlled;
  if (planHookRuns(snapshot, policy, 'beforePlan', 'afterPlan').length === 0) return undefined;
  const refuse = failing('REFIT_CONTROL');
  const title = titleOf(view);
  const { abort, hooksRetried } = snapshot.plan.controls;
  if (abort !== undefined)
    return refuse(
      `${title} was aborted, so its hooks cannot run again; to start again: ${view.texts.advice.startOver(view).clause}`,
    );
  const failed = failedPlanHooks(snapshot, policy);
  if (failed.length > 0)
    return {
      annotations: { [RETRY_HOOKS_ANNOTATION]: rfc3339(now) },
      said: [`The hooks of ${title} will run again: ${listed(failed)} failed.`],
    };
  const isAsked = hooksRetried !== undefined;
  return refuse(
    isAsked
      ? `no hook of ${title} has failed since its hooks were tried again at ${hooksRetried}`
      : `no hook of ${title} has failed: BeforePlan and AfterPlan hooks run again only after a failure`,
  );
}
