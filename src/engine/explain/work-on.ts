/** Names the work on one target for people. A roll-back is never called an upgrade. */
import { isOlder } from '../../versions/release-parts.ts';
import { factsOf, versionAsked, versionBefore } from '../gates/types.ts';
import { type RolloutWork, type Stage, type Target, withStages, workOf } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';

/**
 * Returns what the rollout does to this target. Some dialects cannot mark a rollout that goes back, because another
 * product decides the version. Such work is a roll-back if the target ran a newer version before, or runs one while its
 * work begins.
 */
export function workOn(snapshot: Snapshot, stage: Stage, target: Target): RolloutWork {
  const work = workOf(snapshot.rollout, stage);
  if (work === 'roll-back') return work;
  const facts = factsOf(snapshot, target);
  const before = versionBefore(facts) ?? facts.version;
  const asked = versionAsked(facts, stage);
  return before !== undefined && isOlder(asked, before) ? 'roll-back' : 'upgrade';
}

/** Returns what the rollout does: it is a roll-back if it takes every target back. */
export function workOfRollout(snapshot: Snapshot): RolloutWork {
  const targets = withStages(snapshot.rollout);
  const isBack = targets.every(
    ({ stage, target }) => workOn(snapshot, stage, target) === 'roll-back',
  );
  const isMarked = snapshot.rollout.rollsBack !== undefined;
  return isMarked || (isBack && targets.length > 0) ? 'roll-back' : 'upgrade';
}
