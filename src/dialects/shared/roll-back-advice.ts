/** Says how people take nodes back with `refit rollback`, in the texts of the dialects whose plans this command takes back. */
import type { Guidance } from '../../cli/contract/guidance.ts';
import type { PlanToLeave } from '../../cli/contract/plan-runner.ts';
import { planReference } from '../../engine/model/plan-reference.ts';

/** Returns how people run `refit rollback`, which refuses a plan that has not ended. `options` begin with a space. */
export function rollBackPlan(plan: PlanToLeave, options = ''): Guidance {
  // A command finds a plan without a namespace by its name alone.
  const name = plan.namespace === undefined ? plan.name : planReference(plan);
  const { updateConfig } = plan;
  const steps: readonly Guidance[] = [
    // An abort comes first, because until then more nodes get the release.
    ...(plan.phase === 'running'
      ? [
          {
            clause: `run refit abort ${name} and wait until the nodes in progress have finished`,
            commands: [`refit abort ${name}`],
          },
        ]
      : []),
    // The UpdateConfig would install the version again as soon as the nodes have gone back.
    ...(updateConfig === undefined
      ? []
      : [
          {
            clause: `delete UpdateConfig ${updateConfig}, if it still exists`,
            commands: [`kubectl delete updateconfigs.autopilot.k0sproject.io ${updateConfig}`],
          },
        ]),
    {
      clause: `run refit rollback ${name}${options} --reason TEXT`,
      commands: [`refit rollback ${name}${options} --reason TEXT`],
    },
  ];
  return {
    clause: steps.map(({ clause }) => clause).join(', then '),
    commands: steps.flatMap(({ commands }) => commands),
  };
}
