/** Gate and verifier: a worker must be Ready before it is touched and after it is done. */
import { because } from '../reasons.ts';
import { type Gate, PASS } from './types.ts';

export const nodeReady: Gate = {
  name: 'node-ready',
  evaluate({ stage, facts, target }) {
    if (stage.role !== 'worker' || facts.ready === true) return PASS;
    return { kind: 'wait', reason: because('NodeNotReady', `node ${target.name} is not Ready`) };
  },
};
