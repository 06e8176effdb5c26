/** Settles an assessment, so that a single record says that a target is done and that the next ones are intended. */
import { onceForEach } from '../../util/memo.ts';
import { advance } from './advance.ts';
import { type Assessment, assess } from './assess.ts';

/** Returns the assessment of the rollout after all moves that need no new information; the same object if nothing moves. */
export const settle = onceForEach((assessment: Assessment): Assessment => {
  const { snapshot, policy, now } = assessment;
  const rollout = advance(assessment);
  if (rollout === snapshot.rollout) return assessment;
  return settle(assess({ ...snapshot, rollout }, policy, now));
});
