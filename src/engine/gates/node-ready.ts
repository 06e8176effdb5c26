/** Gate and verifier: a node must be Ready before and after its upgrade. */
import { because } from '../model/reasons.ts';
import { type Gate, PASS } from './types.ts';

export const nodeReady: Gate = {
  name: 'node-ready',
  evaluate({ stage, facts, target }) {
    // A controller's object need not have a Ready condition.
    if (facts.ready ?? stage.role === 'controller') return PASS;
    const reason = because('NodeNotReady', `node ${target.name} is not Ready`);
    return { kind: 'wait', reason, ends: 'the node is Ready', since: facts.readySince };
  },
};
