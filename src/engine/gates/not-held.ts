/** Gate: a person may hold a single node. The plan goes on with the other nodes. */
import { isHeld } from '../../signal/holds.ts';
import type { Snapshot } from '../model/decision.ts';
import type { Target } from '../model/rollout.ts';
import { factsOf, type Gate, PASS, wait } from './types.ts';

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

/** Returns true if somebody holds the target, so that the plan goes on without it. */
export function isTargetHeld(snapshot: Pick<Snapshot, 'facts'>, target: Target, now: number) {
  const { hold } = factsOf(snapshot, target);
  return hold !== undefined && isHeld(hold, now);
}
