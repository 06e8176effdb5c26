/** Chooses the waits that `refit status` shows, and the time at which each of them ends at the latest. */
import { stepEnd } from '../../engine/assess/evaluate-target.ts';
import { factsOf } from '../../engine/gates/types.ts';
import type { Snapshot, Wait } from '../../engine/model/decision.ts';
import { isUnasked } from '../../engine/model/reasons.ts';
import { isFinal, type Rollout, targetsIn } from '../../engine/model/rollout.ts';
import type { RolloutPolicy } from '../../engine/policy/rollout-policy.ts';
import { rfc3339 } from '../../util/clock.ts';

interface ShownWaitsInput {
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  /** The rollout as the controller would record it next. */
  readonly upcoming: Rollout;
}

/** Returns the waits to show. For a new plan that is about to end, returns no waits. */
export function shownWaits(
  { snapshot, upcoming, policy }: ShownWaitsInput,
  waits: readonly Wait[],
): Wait[] {
  if (snapshot.rollout.phase === 'new' && isFinal(upcoming)) return [];
  const ends = stepEnds(snapshot, policy);
  return waits
    .filter(({ gate, reason }) => gate !== 'done' && gate !== 'failed' && !isUnasked(reason))
    .map((wait) => (wait.target === undefined ? wait : withEnd(wait, ends.get(wait.target))));
}

/**
 * Returns the time at which the step of each target in progress ends, in milliseconds since the Unix epoch. The keys
 * are the names of the targets.
 */
function stepEnds(snapshot: Snapshot, policy: RolloutPolicy): Map<string, number> {
  const moving = targetsIn(snapshot.rollout, 'intended');
  return new Map(moving.map((target) => [target.name, stepEnd(factsOf(snapshot, target), policy)]));
}

/**
 * Returns the wait with `until` set to `end`, if `until` is missing or later than `end`. `end` is the deadline of the
 * step in milliseconds since the Unix epoch.
 */
function withEnd(wait: Wait, end = Number.POSITIVE_INFINITY): Wait {
  const isSooner = Date.parse(wait.until ?? '') <= end;
  if (isSooner || !Number.isFinite(end)) return wait;
  return { ...wait, until: rfc3339(end) };
}
