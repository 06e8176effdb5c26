/**
 * Decides which targets a rollout skips at its end: workers that people hold or pin, and workers whose drain cannot
 * succeed.
 */
import { rfc3339 } from '../../util/clock.ts';
import { isHolding, isTargetHeld } from '../gates/held-targets.ts';
import { factsOf } from '../gates/types.ts';
import type { Reason } from '../model/reasons.ts';
import { inState, type Stage, type Target, targetsIn } from '../model/rollout.ts';
import type { GatedTarget } from '../schedule/slots.ts';
import type { Assessment } from './assess.ts';

/**
 * Returns the targets to record as skipped now. `waiting` contains the targets that a gate does not let start. The
 * result is empty while a target is in progress, and while a waiting target can still start later. A target can still
 * start if it waits for a gate that is evaluated before the gates of holds and drains, such as a pause or a window.
 * Controllers are never skipped, because no worker may start before all controllers.
 */
export function targetsToLeaveOut(
  assessment: Assessment,
  stage: Stage,
  waiting: readonly GatedTarget[],
): Target[] {
  const { snapshot, policy, now, isStopping } = assessment;
  const mayLeave = snapshot.abilities.canSkip && stage.role === 'worker' && !isStopping;
  if (!mayLeave || inState(stage, 'intended').length > 0) return [];
  // Targets that wait for the gate `order` are ignored, because they wait only for targets that are left out.
  const asked = waiting.filter(({ gate }) => gate !== 'order');
  const isLeftOut = ({ gate, target }: GatedTarget): boolean =>
    isHolding(gate)
      ? isHeldToTheEnd(assessment, stage, target)
      : isHopeless(assessment, gate, target);
  if (!asked.every(isLeftOut)) return [];
  const skipped = targetsIn(snapshot.rollout, 'skipped').length;
  // Targets whose drain cannot succeed are recorded as skipped only until the number of skipped targets exceeds the
  // limit of the policy by one. One target above the limit already stops the rollout.
  const room = (policy.maxBlocked ?? Number.POSITIVE_INFINITY) + 1 - skipped;
  const held = asked.filter(({ gate }) => isHolding(gate));
  const hopeless = asked.filter(({ gate }) => !isHolding(gate)).slice(0, Math.max(0, room));
  return [...held, ...hopeless].map(
    ({ target }): Target => ({ ...target, state: 'skipped', since: rfc3339(now) }),
  );
}

/**
 * Returns true if the plan goes on without a target that a gate has stopped, because the Node of this worker was deleted
 * after the plan began.
 */
export function isGoneAndLeftOut(
  { snapshot, policy }: Pick<Assessment, 'snapshot' | 'policy'>,
  stage: Stage,
  { code }: Pick<Reason, 'code'>,
): boolean {
  const isAllowed = policy.leavesOutGone === true && snapshot.abilities.canSkip;
  return isAllowed && stage.role === 'worker' && code === 'TargetMissing';
}

function isHeldToTheEnd(assessment: Assessment, stage: Stage, target: Target): boolean {
  return assessment.policy.leavesOutHeld === true && isTargetHeld(assessment, stage, target);
}

/**
 * Returns true if the drain preview has found obstacles for at least the maximum duration of a drain. Only the time
 * counts in which this leader watched.
 */
function isHopeless({ snapshot, policy }: Assessment, gate: string, target: Target): boolean {
  const { drain, stepDeadlines } = policy;
  if (gate !== 'drain-possible' || drain.onDeadline !== 'skipNode') return false;
  const { blockedMs = 0 } = factsOf(snapshot, target);
  return blockedMs > 0 && blockedMs >= stepDeadlines.drain;
}
