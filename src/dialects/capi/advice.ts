/** What people can do about the update of a Machine of Cluster API. */
import type { Guidance } from '../../cli/contract/guidance.ts';
import type { AdvisedPlan, PlanRunner } from '../../cli/contract/plan-runner.ts';
import { AGENT_LIMIT } from '../shared/agent-limit.ts';

export const advice: PlanRunner = {
  name: '`refit capi-extension`',
  subject: undefined,
  limit: AGENT_LIMIT,
  listing: 'the Machine',
  startOver: anew,
  again: anew,
  corrected: undefined,
  retry: { causes: 'see the log of the agent on the node, and the version of the Machine' },
  goBack: ({ name }) => {
    const [machine, namespace = 'default'] = name.split('/').toReversed();
    const command = `refit rollback machine/${machine} -n ${namespace}`;
    return {
      clause: `run ${command} with the kubeconfig of the management cluster`,
      commands: [command],
    };
  },
  backUp: undefined,
  runsHere: false,
};

function anew({ name }: AdvisedPlan): Guidance {
  const command = `refit retry ${name}`;
  return {
    clause: `run ${command}: the next call of Cluster API starts the update again`,
    commands: [command],
  };
}
