/** Gate and verifier: whatever tells whether it is Ready must be so before it is touched and after it is done. */
import { because } from '../model/reasons.ts';
import { type Gate, PASS } from './types.ts';

export const nodeReady: Gate = {
  name: 'node-ready',
  evaluate({ stage, facts, target }) {
    // A worker that does not tell is not Ready; the object of a controller need not have such a condition.
    if (facts.ready ?? stage.role === 'controller') return PASS;
    const reason = because('NodeNotReady', `node ${target.name} is not Ready`);
    return { kind: 'wait', reason, ends: 'the node is Ready', since: facts.readySince };
  },
};
