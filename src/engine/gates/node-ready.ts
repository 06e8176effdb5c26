/** Gate and verifier: a worker must be Ready before it is touched and after it is done. */
import { because } from '../reasons.ts';
import { type Gate, PASS } from './types.ts';

export const nodeReady: Gate = {
  name: 'node-ready',
  evaluate({ stage, facts, target }) {
    if (stage.role !== 'worker' || facts.ready === true) return PASS;
    const reason = because('NodeNotReady', `node ${target.name} is not Ready`);
    return { kind: 'wait', reason, since: facts.readySince };
  },
};
