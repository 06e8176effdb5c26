/** Remembers for which plans it was reported that the policy asks for a roll-back that the leader must not begin. */
import type { Assessment } from '../assess/assess.ts';
import { rollBackVerdict } from '../assess/roll-back.ts';
import type { Reason } from '../model/reasons.ts';
import { isFinal } from '../model/rollout.ts';

/** Returns a memory, so that the obstacle of each plan is reported only once. */
export function refusedRollBackMemory() {
  const reported = new Map<string, string>();
  return {
    at(key: string, { snapshot, policy, now }: Assessment): Reason | undefined {
      const verdict = isFinal(snapshot.rollout)
        ? rollBackVerdict(snapshot, policy, now)
        : undefined;
      if (verdict?.kind !== 'refused') {
        reported.delete(key);
        return undefined;
      }
      const { reason } = verdict;
      const isNew = reported.get(key) !== reason.message;
      reported.set(key, reason.message);
      return isNew ? reason : undefined;
    },
    forget: (key: string) => reported.delete(key),
  };
}
