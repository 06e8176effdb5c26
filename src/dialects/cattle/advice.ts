/** What people can do about a Plan of Rancher. */
import type { PlanRunner } from '../../cli/contract/plan-runner.ts';
import { planReference } from '../../engine/model/plan-reference.ts';
import { rollBackPlan } from '../shared/roll-back-advice.ts';

/** The prefix of the label of a Node that says which hash of a Plan it has got. */
const LABEL_PREFIX = 'plan.upgrade.cattle.io/';

/** The annotation by which people abort a Plan. */
const ABORT = 'refit.upgrade.cattle.io/abort';

export const advice: PlanRunner = {
  name: 'the system-upgrade-controller',
  subject: undefined,
  limit: 'its Job has failed or exceeded its deadline',
  listing: 'the Plan',
  startOver: ({ name, namespace = 'default' }) => ({
    clause: `remove the annotation ${ABORT} from the Plan`,
    commands: [`kubectl annotate plans.upgrade.cattle.io ${name} -n ${namespace} ${ABORT}-`],
  }),
  again: ({ name }, nodes = []) => {
    const which = nodes.length === 0 ? 'NODE' : nodes.join(' ');
    const command = `kubectl label nodes ${which} ${LABEL_PREFIX}${name}-`;
    return {
      clause: `run ${command}, which lets the Plan start there again, or change the version of the Plan`,
      commands: [command],
    };
  },
  corrected: 'Fix the Plan, its Secret or its channel. The Plan then continues by itself.',
  retriesAborted: false,
  retriesGone: false,
  retry: {
    causes: 'see the log of its Job while the Job exists, and the log of the kubelet on the node',
  },
  // The image of a Plan that upgraded nodes may refuse an older version.
  goBack: (plan) => rollBackPlan(plan, ' --image IMAGE'),
  otherVersion: ({ dialect, name, namespace = 'default' }) =>
    `run refit upgrade VERSION --plan ${planReference({ dialect, namespace, name })}, and the same for each other Plan that installs this release`,
  effectOfHolds: () => undefined,
  backUp: undefined,
  runsHere: false,
};
