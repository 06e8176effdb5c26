/**
 * Gate: the agent on the host must know whether another agent also acts on this host. An agent that does not know this
 * carries out no signal, so the target would miss its deadline.
 */
import { type Gate, PASS, wait } from './types.ts';

export const agentKnown: Gate = {
  name: 'agent-known',
  evaluate({ target, facts: { agent } }) {
    if (agent?.doubt === undefined) return PASS;
    const ends = `the agent on ${target.name} reports whether it acts or leaves the host to another agent, or its annotation is removed because no agent runs there any more`;
    return wait('AgentInDoubt', `${target.name}: ${agent.doubt}`, ends);
  },
};
