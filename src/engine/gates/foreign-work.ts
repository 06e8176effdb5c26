/** Gate: what an earlier plan left at work counts against the same limits, although nobody waits for it any more. */
import { type Gate, PASS, wait } from './types.ts';

export const foreignWork: Gate = {
  name: 'others-at-work',
  evaluate({ stage, target, foreignWork: others, room }) {
    // The signal replaces whatever its own target was told before.
    const rest = others.filter(({ name, role }) => name !== target.name || role !== stage.role);
    const controllers = rest.filter(({ role }) => role === 'controller');
    const full = stage.role === 'worker' && rest.length >= room ? rest : [];
    const inTheWay = controllers.length > 0 ? controllers : full;
    if (inTheWay.length === 0) return PASS;
    const names = inTheWay.map(({ name }) => name).join(', ');
    const message = `${names} ${inTheWay.length === 1 ? 'is' : 'are'} still at work for another plan`;
    const since = inTheWay.map((other) => other.since).toSorted((a, b) => Date.parse(a) - Date.parse(b))[0];
    const ends = 'those nodes have ended, or two hours after the leader first observed this';
    const recheckMs = Math.min(...inTheWay.map(({ leftMs }) => leftMs));
    return wait('ForeignWork', message, ends, { since, recheckMs });
  },
};
