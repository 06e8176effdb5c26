/** Decides which targets a rollout leaves out at its end: workers that people hold, and workers whose drain cannot succeed. */
import { rfc3339 } from '../../util/clock.ts';
import { isTargetHeld } from '../gates/held-targets.ts';
import { factsOf } from '../gates/types.ts';
import { isUnanswered } from '../model/decision.ts';
import { inState, type Stage, type Target } from '../model/rollout.ts';
import type { Assessment } from './assess.ts';

/**
 * Returns the targets of the stage to record as skipped now; empty while another target of the stage can still start or is in
 * progress. Controllers are never left out, because no worker may start before all controllers.
 */
export function targetsToLeaveOut(assessment: Assessment, stage: Stage): Target[] {
  const { snapshot, now, isStopping } = assessment;
  const pending = inState(stage, 'pending');
  const mayLeave = snapshot.canSkip === true && stage.role === 'worker' && !isStopping;
  if (!mayLeave || inState(stage, 'intended').length > 0) return [];
  const isLeftOut = (target: Target): boolean =>
    isHeldToTheEnd(assessment, target) || isHopeless(assessment, stage, target);
  if (!pending.every(isLeftOut)) return [];
  return pending.map((target): Target => ({ ...target, state: 'skipped', since: rfc3339(now) }));
}

function isHeldToTheEnd({ snapshot, policy, now }: Assessment, target: Target): boolean {
  return policy.leavesOutHeld === true && isTargetHeld(snapshot, target, now);
}

/** Returns true if the drain preview found obstacles, and the stage has made no progress for as long as a drain may take. */
function isHopeless({ snapshot, policy, now }: Assessment, stage: Stage, target: Target): boolean {
  const { drain, stepDeadlines } = policy;
  if (drain.onDeadline !== 'skipNode' || !drain.enabled) return false;
  const { drainPreview } = factsOf(snapshot, target);
  if (typeof drainPreview !== 'object' || isUnanswered(drainPreview)) return false;
  if (drainPreview.obstacles.length === 0 && drainPreview.refused.length === 0) return false;
  const times = stage.targets.map(({ since }) => Date.parse(since));
  const lastProgress = Math.max(...times.filter((time) => !Number.isNaN(time)));
  return now - lastProgress >= stepDeadlines.drain;
}
