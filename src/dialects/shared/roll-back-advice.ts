/** Says how people take nodes back with `refit rollback`, in the texts of the dialects whose plans this command takes back. */
import type { PlanToLeave } from '../../cli/contract/plan-runner.ts';
import { planReference } from '../../engine/model/plan-reference.ts';

/** Returns a clause about `refit rollback`, which refuses a plan that has not ended. */
export function rollBackPlan(plan: PlanToLeave): string {
  // A command finds a plan without a namespace by its name alone.
  const name = plan.namespace === undefined ? plan.name : planReference(plan);
  const steps = [
    // An abort comes first, because until then more nodes get the release.
    ...(plan.phase === 'running'
      ? [`run refit abort ${name} and wait until the nodes in progress have finished`]
      : []),
    // The UpdateConfig would install the version again as soon as the nodes have gone back.
    ...(plan.updateConfig === undefined
      ? []
      : [`delete UpdateConfig ${plan.updateConfig}, if it still exists`]),
    `run refit rollback ${name} --reason TEXT`,
  ];
  return steps.join(', then ');
}
