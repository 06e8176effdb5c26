/** What people can do about a Plan of Rancher. */
import type { PlanRunner } from '../../cli/contract/plan-runner.ts';
import { rollBackPlan } from '../shared/roll-back-advice.ts';

export const advice: PlanRunner = {
  name: 'the system-upgrade-controller',
  subject: undefined,
  limit: 'its Job has failed or exceeded its deadline',
  startOver: () => 'remove the annotation refit.upgrade.cattle.io/abort from the Plan',
  again: () => 'apply the Plan again with a change of its spec, or delete the failed Job',
  corrected: 'Fix the Plan, its Secret or its channel. The Plan then continues by itself.',
  retry: {
    causes: 'see the log of its Job while the Job exists, and the log of the kubelet on the node',
  },
  goBack: rollBackPlan,
  backUp: undefined,
  runsHere: false,
};
