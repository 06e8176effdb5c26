/** Gate: the target must exist. */
import { type Gate, PASS, stop } from './types.ts';

export const targetExists: Gate = {
  name: 'target-exists',
  evaluate({ facts, stage, target }) {
    if (facts.exists) return PASS;
    const hint = facts.meant === undefined ? '' : `: ${facts.meant}`;
    return stop('TargetMissing', `${target.name}, a ${stage.role}, does not exist${hint}`);
  },
};
