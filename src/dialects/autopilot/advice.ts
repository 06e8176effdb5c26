/** What people can do about a Plan of k0s. */

import type { Guidance } from '../../cli/contract/guidance.ts';
import type { AdvisedPlan, PlanRunner } from '../../cli/contract/plan-runner.ts';
import { isOpenPlan } from '../../engine/model/shown-phases.ts';
import { shellWord } from '../../util/shell-word.ts';
import { AGENT_LIMIT } from '../shared/agent-limit.ts';
import { rollBackPlan } from '../shared/roll-back-advice.ts';

export const advice: PlanRunner = {
  name: '`refit controller`',
  subject: undefined,
  limit: AGENT_LIMIT,
  listing: 'the Plan',
  startOver: anew,
  again: anew,
  corrected: undefined,
  retriesAborted: false,
  retriesGone: false,
  retry: { causes: 'the node, or the version, url or sha256 in the Plan' },
  goBack: rollBackPlan,
  // An UpdateConfig would replace a Plan with another version by one for the newest release of its channel.
  otherVersion: (plan) => {
    if (plan.updateConfig !== undefined) return undefined;
    return isOpenPlan(plan)
      ? 'run refit abort, and refit upgrade VERSION once the Plan has ended'
      : 'run refit upgrade VERSION, which replaces this Plan';
  },
  effectOfHolds: () => undefined,
  backUp:
    'before the start, take a backup on a controller with `k0s backup --save-path DIRECTORY`, or set etcdSnapshot in a policy',
  runsHere: false,
};

/**
 * Returns how the user runs the Plan again. For a Plan that rolls a run back, there is no file that a
 * user could apply again, so `refit rollback` creates another Plan from the record of that run. While the
 * UpdateConfig of a Plan exists, a user who applied the Plan again would compete with it.
 */
function anew({ name, rollsBackRun, updateConfig }: AdvisedPlan): Guidance {
  if (rollsBackRun !== undefined) {
    const command = `refit rollback ${name} --run ${shellWord(rollsBackRun)} --reason TEXT`;
    return {
      clause: `run ${command}, which replaces this Plan by another one`,
      commands: [command],
    };
  }
  const deletion = `kubectl delete plans.autopilot.k0sproject.io ${name}`;
  if (updateConfig === undefined)
    return {
      clause: 'delete the Plan and apply it again',
      commands: [deletion, 'kubectl apply -f FILE'],
    };
  return {
    clause: `delete the Plan, and apply it again only if UpdateConfig ${updateConfig} does not exist any more: while it exists, it creates another Plan for the newest release of its channel (refit updates shows when)`,
    commands: [deletion],
  };
}
