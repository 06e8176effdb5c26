/** Explains to people whether the leader rolls a plan back by itself. No decision depends on this explanation. */
import { runIdIn, shortId } from '../model/runs.ts';
import type { PlanReading } from './plan-reading.ts';

/**
 * Returns a sentence that says whether the leader rolls the plan back. Returns undefined if the leader does not roll
 * the plan back now and would not roll it back after failures.
 */
export function rollBackSentence(
  reading: Pick<PlanReading, 'plan' | 'isOver' | 'controls' | 'rollBack'>,
): string | undefined {
  const { rollsBack } = reading.plan;
  const verdict = reading.rollBack();
  if (rollsBack !== undefined) {
    const asks = rollsBack.reason === undefined ? '' : `, says ${rollsBack.reason}`;
    const isRefused = reading.isOver && verdict?.kind === 'refused';
    const end = isRefused ? '; Refit does not roll back a roll-back' : '';
    return `this plan rolls run ${shortId(runIdIn(rollsBack.run))} back${asks}${end}`;
  }
  const policyName = `UpgradePolicy ${reading.controls.policy}`;
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
