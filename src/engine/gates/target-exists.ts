/** Gate: the target must exist. */
import { because } from '../model/reasons.ts';
import { type Gate, PASS } from './types.ts';

export const targetExists: Gate = {
  name: 'target-exists',
  evaluate({ facts, stage, target }) {
    if (facts.exists) return PASS;
    return { kind: 'stop', reason: because('TargetMissing', `${stage.role} ${target.name} does not exist`) };
  },
};
