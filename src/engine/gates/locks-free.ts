/**
 * Gate: no target starts while another tool holds a lock that forbids others to disrupt nodes. The policy names the
 * tools that Refit coordinates with.
 */
import { locksOf } from '../../coordination/locks.ts';
import type { OtherLock } from '../../coordination/tool.ts';
import { type Gate, PASS, type Verdict, wait } from './types.ts';

export const locksFree: Gate = {
  name: 'locks-free',
  ofRollout: true,
  evaluate({ policy: { coordinate }, outside: { locks }, now }) {
    if (locks === undefined) return PASS;
    for (const { tool, title } of locksOf(coordinate)) {
      const known = locks.find((each) => each.tool === tool);
      if (!known)
        return wait('OtherToolAtWork', `${title} is being read`, 'the API server has answered', {
          isPassing: true,
        });
      const [other] = known.others;
      if (other) return untilFree(other, now);
    }
    return PASS;
  },
};

function untilFree({ message, ends, until }: OtherLock, now: number): Verdict {
  if (until === undefined) return wait('OtherToolAtWork', message, ends);
  const recheckMs = Math.max(0, Date.parse(until) - now);
  return wait('OtherToolAtWork', message, `${ends}; the lock expires at ${until}`, {
    until,
    recheckMs,
  });
}
