/** Gate: a person may hold a single node. The plan continues with the other nodes. */
import { isHeld } from '../../signal/holds.ts';
import { type Gate, PASS, wait } from './types.ts';

export const notHeld: Gate = {
  name: 'not-held',
  isOfTargetAlone: true,
  evaluate({ target: { name }, facts: { hold }, now }) {
    if (hold === undefined || !isHeld(hold, now)) return PASS;
    const { reason, by, since, until } = hold;
    const who = by === undefined ? '' : ` by ${by}`;
    const why = reason === undefined ? '' : `: ${reason}`;
    const message = `${name} is held${who}${why}`;
    const command = `somebody runs refit unhold ${name}`;
    if (until === undefined) return wait('Held', message, command, { since });
    const ends = `the hold ends at ${until}, or ${command}`;
    const recheckMs = Date.parse(until) - now;
    return wait('Held', message, ends, { since, until, recheckMs });
  },
};
