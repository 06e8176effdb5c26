/** Explains to people whether the leader rolls a plan back by itself. No decision depends on this explanation. */
import type { Assessment } from '../assess/assess.ts';
import { rollBackVerdict } from '../assess/roll-back.ts';
import { isFinal } from '../model/rollout.ts';
import { runIdIn } from '../model/runs.ts';

/**
 * Returns a sentence that says whether the leader rolls the plan back. Returns undefined if the leader does not roll
 * the plan back now and would not roll it back after failures.
 */
export function rollBackSentence({
  snapshot,
  policy,
  now,
}: Pick<Assessment, 'snapshot' | 'policy' | 'now'>): string | undefined {
  const { rollsBack, rollsBackReason } = snapshot.rollout;
  const verdict = rollBackVerdict(snapshot, policy, now);
  if (rollsBack !== undefined) {
    const asks = rollsBackReason === undefined ? '' : `, says ${rollsBackReason}`;
    const end =
      isFinal(snapshot.rollout) && verdict?.kind === 'refused'
        ? '; Refit does not roll back a roll-back'
        : '';
    return `this plan rolls run ${runIdIn(rollsBack)} back${asks}${end}`;
  }
  const policyName = `UpgradePolicy ${policy.name}`;
  switch (verdict?.kind) {
    case 'ahead':
      return `${policyName}: if failures use up a budget, the plan stops and Refit rolls its nodes back`;
    case 'paused':
      return `${policyName}: Refit rolls the nodes back once nothing is paused; refit abort prevents that`;
    case 'ask':
    case 'wait':
      return `${policyName}: Refit rolls the nodes back once the end of the run is in the NodeRollout`;
    case 'delayed':
      return `${policyName}: Refit rolls the nodes back once it knows what each of them runs: ${verdict.awaits}`;
    case 'due':
      return `Refit rolls the nodes back now: ${verdict.reason.message}`;
    case 'refused':
      return verdict.reason.message;
    case undefined:
      return undefined;
  }
}
