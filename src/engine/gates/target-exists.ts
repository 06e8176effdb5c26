/** Gate: the target must exist. */
import { shownRole } from '../model/rollout.ts';
import { type Gate, PASS, stop } from './types.ts';

export const targetExists: Gate = {
  name: 'target-exists',
  evaluate({ facts, stage, target }) {
    if (facts.exists) return PASS;
    const hint = facts.meant === undefined ? '' : `: ${facts.meant}`;
    return stop('TargetMissing', `${target.name} does not exist as a ${shownRole(stage)}${hint}`);
  },
};
