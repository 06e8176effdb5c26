/**
 * Remembers the plans for which a refused roll-back was reported: the policy asks for a roll-back, but the leader must
 * not begin it.
 */
import type { Assessment } from '../assess/assess.ts';
import { rollBackVerdict } from '../assess/roll-back.ts';
import { because, type Reason } from '../model/reasons.ts';
import { isFinal } from '../model/rollout.ts';

/** Milliseconds for which the end of a run may be missing in the NodeRollout before an Event reports it. */
const LONG_MS = 60_000;

/**
 * Returns an object that remembers the reported obstacles to roll-backs, so that the obstacle of each plan is reported
 * only once.
 */
export function refusedRollBackMemory() {
  const reported = new Map<string, string>();
  const waitingSince = new Map<string, number>();

  const obstacleTo = (key: string, { snapshot, policy, now }: Assessment): Reason | undefined => {
    const verdict = isFinal(snapshot.rollout) ? rollBackVerdict(snapshot, policy, now) : undefined;
    if (verdict?.kind !== 'wait') waitingSince.delete(key);
    if (verdict?.kind === 'refused') return verdict.reason;
    if (verdict?.kind !== 'wait') return undefined;
    const since = waitingSince.getOrInsert(key, now);
    if (now - since < LONG_MS) return undefined;
    const message = `onFailure: RollBack of UpgradePolicy ${policy.name} has the same effect as Stop until the NodeRollout shows that run ${snapshot.rollout.id} has ended, and which versions its nodes ran before`;
    return because('RollBackRefused', message);
  };

  return {
    at(key: string, assessment: Assessment): Reason | undefined {
      const reason = obstacleTo(key, assessment);
      const isNew = reason !== undefined && reported.get(key) !== reason.message;
      if (reason === undefined) reported.delete(key);
      else reported.set(key, reason.message);
      return isNew ? reason : undefined;
    },
    forget(key: string): void {
      reported.delete(key);
      waitingSince.delete(key);
    },
  };
}
