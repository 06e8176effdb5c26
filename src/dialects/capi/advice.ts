/** What people can do about the update of a Machine of Cluster API. */
import { machines } from '../../api/capi/machine.ts';
import type { Guidance } from '../../cli/contract/guidance.ts';
import type { AdvisedPlan, PlanRunner } from '../../cli/contract/plan-runner.ts';
import { planReference } from '../../engine/model/plan-reference.ts';
import { AGENT_LIMIT } from '../shared/agent-limit.ts';
import { effectOfHolds } from './held-machines.ts';

export const advice: PlanRunner = {
  name: '`refit capi-extension`',
  subject: undefined,
  limit: AGENT_LIMIT,
  listing: 'the Machine',
  startOver: (plan) => (isOfOneMachine(plan) ? anew(plan) : startedAgain(plan)),
  again: (plan, nodes) => (isOfOneMachine(plan) ? anew(plan) : retried(nodes)),
  corrected: undefined,
  retry: { causes: 'see the log of the agent on the node, and the version of the Machine' },
  retriesAborted: true,
  retriesGone: true,
  goBack: ({ kind = machines.kind, name: whole }) => {
    const [name, namespace = 'default'] = whole.split('/').toReversed();
    const command = `refit rollback ${kind.toLowerCase()}/${name} -n ${namespace}`;
    return {
      clause: `run ${command} with the kubeconfig of the management cluster`,
      commands: [command],
    };
  },
  // Cluster API gives a Machine another version only after its update has succeeded, or in another Machine.
  otherVersion: () => undefined,
  effectOfHolds: ({ kind, name }) =>
    kind === undefined || kind === machines.kind ? undefined : effectOfHolds({ kind, name }),
  backUp: undefined,
  runsHere: false,
};

/** Returns true if the plan updates one Machine, and false if it updates the Machines of an owner. */
function isOfOneMachine({ kind = machines.kind }: AdvisedPlan): boolean {
  return kind === machines.kind;
}

function startedAgain({ dialect, name }: AdvisedPlan): Guidance {
  const command = `refit retry ${planReference({ dialect, name })}`;
  return { clause: `run ${command}`, commands: [command] };
}

function retried(nodes: readonly string[] = []): Guidance {
  const commands = nodes.map((name) => `refit retry ${name}`);
  const clause =
    commands.length === 1 ? `run ${commands.join('')}` : 'run refit retry NODE for each such node';
  return { clause, commands };
}

function anew({ name }: AdvisedPlan): Guidance {
  const command = `refit retry ${name}`;
  return {
    clause: `run ${command}: the next call of Cluster API starts the update again`,
    commands: [command],
  };
}
