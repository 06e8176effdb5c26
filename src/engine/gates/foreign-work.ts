/** Gate: what an earlier plan left at work counts against the same limits, although nobody waits for it any more. */
import { type Gate, PASS, wait } from './types.ts';

export const foreignWork: Gate = {
  name: 'foreign-work',
  evaluate({ stage, target, facts, foreignWork, room }) {
    const occupant = facts.occupant;
    if (typeof occupant === 'object') return wait('ForeignWork', occupant.message, occupant.ends);
    if (occupant !== undefined)
      return wait(
        'ForeignWork',
        `${occupant} is at work on ${target.name}`,
        `${occupant} is done with ${target.name}`,
      );
    // The signal replaces whatever its own target was told before.
    const rest = foreignWork.filter(
      ({ name, role }) => name !== target.name || role !== stage.role,
    );
    const controllers = rest.filter(({ role }) => role === 'controller');
    // No controller leaves the version that a worker still gets, as between two commands of one plan.
    const isFull = stage.role === 'controller' || rest.length >= room;
    const inTheWay = controllers.length === 0 && isFull ? rest : controllers;
    if (inTheWay.length === 0) return PASS;
    const names = inTheWay.map(({ name }) => name).join(', ');
    const message = `${names} ${inTheWay.length === 1 ? 'is' : 'are'} still at work for another plan`;
    const since = inTheWay
      .map((other) => other.since)
      .toSorted((a, b) => Date.parse(a) - Date.parse(b))[0];
    const ends = 'those nodes have ended, or two hours after the leader first observed this';
    const recheckMs = Math.min(...inTheWay.map(({ leftMs }) => leftMs));
    return wait('ForeignWork', message, ends, { since, recheckMs });
  },
};
