/**
 * Remembers the ended plans for which a contradiction was reported: the plan or the nodes no longer match the recorded
 * end.
 */
import type { Assessment } from '../assess/assess.ts';
import { planEndOf } from '../assess/ended.ts';
import type { Reason } from '../model/reasons.ts';

/**
 * Returns an object that remembers, for each plan, the reported contradiction to the recorded end. So each
 * contradiction is reported only once.
 */
export function endMemory() {
  const reported = new Map<string, string>();
  return {
    at(key: string, { snapshot, now }: Assessment): Reason | undefined {
      const { phase, reason } = planEndOf(snapshot, now);
      const isNew = reported.get(key) !== reason?.message;
      // Other contradictions need no report: the end of a plan without targets was reported with an Event when it was recorded.
      if (phase !== 'edited' && phase !== 'differs') {
        reported.delete(key);
        return undefined;
      }
      if (reason) reported.set(key, reason.message);
      return isNew ? reason : undefined;
    },
    forget: (key: string) => reported.delete(key),
  };
}
