/** Gate: the policy may require that Refit's own agent acts on the node. */
import { type Gate, PASS, wait } from './types.ts';

export const agentAllowed: Gate = {
  name: 'agent-allowed',
  evaluate({ target, facts: { agent }, policy: { requireAgent, name } }) {
    if (!requireAgent || agent === undefined || agent.ours) return PASS;
    const message = `the agent of ${target.name} is ${agent.title}, and UpgradePolicy ${name} requires Refit's`;
    const ends = `Refit's agent runs on ${target.name}, or spec.agents.require is removed from UpgradePolicy ${name}`;
    return wait('AgentRequired', message, ends);
  },
};
