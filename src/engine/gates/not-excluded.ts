/**
 * Gate: the leader, or the agent of a node, may exclude the node from plans. A plan that includes an excluded node
 * ends.
 */
import { type Gate, PASS } from './types.ts';

export const notExcluded: Gate = {
  name: 'not-excluded',
  evaluate({ stage: { role }, target: { name }, facts: { agent }, policy: { excludedRoles } }) {
    const isByLeader = excludedRoles?.includes(role) === true;
    if (!isByLeader && agent?.excluded !== true) return PASS;
    const who = isByLeader ? 'the leader' : `the agent of ${name}`;
    const message = `${name} is a ${role} that ${who} excludes from plans by --exclude-from-plans`;
    return { kind: 'stop', reason: { code: 'Excluded', message }, ofPlan: true };
  },
};
