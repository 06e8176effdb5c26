/** Gate: nodes that still work for an earlier plan count against the limits of this plan, although that plan no longer waits for them. */
import { type Gate, PASS, wait } from './types.ts';

export const foreignWork: Gate = {
  name: 'foreign-work',
  evaluate({ stage, target, targets, outside: { foreignWork }, room }) {
    const occupant = targets.occupantOf(target.key);
    if (typeof occupant === 'object') {
      const { message, ends, isUnchosen } = occupant;
      return isUnchosen === true
        ? wait('NotChosen', message, ends, { isPassing: true })
        : wait('ForeignWork', message, ends);
    }
    if (occupant !== undefined)
      return wait(
        'ForeignWork',
        `${occupant} is at work on ${target.name}`,
        `${occupant} is done with ${target.name}`,
      );
    // Work of an earlier plan on this target itself is not counted, because the new signal replaces the signal of that
    // work.
    const rest = foreignWork.filter(
      ({ name, role }) => name !== target.name || role !== stage.role,
    );
    const controllers = rest.filter(({ role }) => role === 'controller');
    // A controller waits for all foreign work: while a worker is still being upgraded to a version, no controller may
    // change from that version to another version. Commands of one plan follow the same rule.
    const isFull = stage.role === 'controller' || rest.length >= room;
    const inTheWay = controllers.length === 0 && isFull ? rest : controllers;
    if (inTheWay.length === 0) return PASS;
    const names = inTheWay.map(({ name }) => name).join(', ');
    const message = `${names} ${inTheWay.length === 1 ? 'is' : 'are'} still at work for another plan`;
    const since = inTheWay
      .map((other) => other.since)
      .toSorted((a, b) => Date.parse(a) - Date.parse(b))[0];
    const ends =
      'those nodes have finished that work, or two hours have passed since the leader first observed it';
    const recheckMs = Math.min(...inTheWay.map(({ leftMs }) => leftMs));
    return wait('ForeignWork', message, ends, { since, recheckMs });
  },
};
