/**
 * Gate: Refit must hold the locks of the policy before it signals a target. The leader takes the locks when it finds a
 * recorded intent.
 */
import { locksOf } from '../../coordination/locks.ts';
import { type Gate, PASS, wait } from './types.ts';

export const locksTaken: Gate = {
  name: 'locks-taken',
  ofRollout: true,
  evaluate({ policy: { coordinate }, outside: { locks } }) {
    if (locks === undefined) return PASS;
    for (const { tool, title, taking } of locksOf(coordinate)) {
      const known = locks.find((each) => each.tool === tool);
      if (known?.isOurs === true) continue;
      if (known?.problem === undefined)
        return wait('OtherToolAtWork', `Refit is taking ${title}`, 'Refit holds the lock', {
          isPassing: true,
          keepsIntent: true,
        });
      const message = `Refit cannot take ${title}: ${known.problem}`;
      const remedy = known.isBarred === true ? '' : `; ${taking.rights} prints the rights for it`;
      const ends = `the API server lets Refit take the lock${remedy}`;
      return wait('OtherToolAtWork', message, ends, { keepsIntent: true });
    }
    return PASS;
  },
};
