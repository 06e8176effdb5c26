/** Gate: another tool that the policy coordinates with may hold a lock, by which it keeps all others from disrupting nodes. */
import { type Gate, PASS, wait } from './types.ts';

export const locksFree: Gate = {
  name: 'locks-free',
  ofRollout: true,
  evaluate({ policy: { coordinate = [] }, locks, now }) {
    const isAsked = coordinate.includes('Kured') && locks !== undefined;
    if (!isAsked) return PASS;
    if (locks === 'unread') {
      const message = 'the lock of Kured is being read';
      return wait('OtherToolAtWork', message, 'the answer comes', { isPassing: true });
    }
    const lock = locks.find(({ tool }) => coordinate.includes(tool));
    if (!lock) return PASS;
    const { message, ends, until } = lock;
    if (until === undefined) return wait('OtherToolAtWork', message, ends);
    const recheckMs = Math.max(0, Date.parse(until) - now);
    return wait('OtherToolAtWork', message, `${ends}; it lapses at ${until}`, { until, recheckMs });
  },
};
