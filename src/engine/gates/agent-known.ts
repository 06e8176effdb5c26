/** Gate: an agent that does not know whether another one acts on its host carries out no signal, and a target sent there would run into its deadline. */
import { type Gate, PASS, wait } from './types.ts';

export const agentKnown: Gate = {
  name: 'agent-known',
  evaluate({ target, facts: { agent } }) {
    if (agent?.doubt === undefined) return PASS;
    const ends = `the agent on ${target.name} announces that it acts or stands aside, or its annotation is removed where no agent runs any more`;
    return wait('AgentInDoubt', `${target.name}: ${agent.doubt}`, ends);
  },
};
