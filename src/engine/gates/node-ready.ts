/** Gate and verifier: a node must be Ready before and after its upgrade. */
import { type Gate, PASS, wait } from './types.ts';

export const nodeReady: Gate = {
  name: 'node-ready',
  evaluate({ stage, facts, target }) {
    // A controller's object need not have a Ready condition.
    if (facts.ready ?? stage.role === 'controller') return PASS;
    const message = `node ${target.name} is not Ready`;
    return wait('NodeNotReady', message, 'the node is Ready', { since: facts.readySince });
  },
};
