/** Remembers which plans have ended otherwise than they say now. */
import type { Assessment } from '../assess/assess.ts';
import { planEndOf } from '../assess/ended.ts';
import type { Reason } from '../model/reasons.ts';

/** Remembers what contradicts the end of each plan: it is reported once. */
export function endMemory() {
  const reported = new Map<string, string>();
  return {
    at(key: string, { snapshot, now }: Assessment): Reason | undefined {
      const { phase, reason } = planEndOf(snapshot, now);
      const isNew = reported.get(key) !== reason?.message;
      // The record of an end without targets has its Event.
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
