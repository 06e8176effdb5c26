/** Carries out the requests of people to retry failed and skipped targets. */
import { rfc3339 } from '../../util/clock.ts';
import { factsOf } from '../gates/types.ts';
import type { ReasonCode } from '../model/reasons.ts';
import {
  isUpgradedByLaterStage,
  type Rollout,
  SECOND,
  stagesAfter,
  type Target,
  targetsIn,
  withStages,
  withTargets,
} from '../model/rollout.ts';
import type { PlanFacts, Snapshot } from '../model/snapshot.ts';

/**
 * The codes of the reasons that a retry removes from the rollout. The targets that caused these reasons start again,
 * and a reason that stayed would end the rollout at once. Any other reason stays as long as a failed target is left.
 */
const OF_THE_END: ReadonlySet<ReasonCode | undefined> = new Set([
  'DoneWithFailures',
  'DoneWithSkipped',
  'DrainTooLong',
]);

/**
 * Returns the rollout in which the failed or skipped targets to retry are pending again; the same object if there is
 * nothing to retry. A target whose work has not ended yet is retried after the end of its work.
 */
export function withRetries(snapshot: Snapshot, now: number): Rollout {
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  if (controls.retries.size === 0 || controls.abort !== undefined) return rollout;
  const again = withStages(rollout)
    .filter(
      ({ stage, target }) =>
        isDue(snapshot, target) && !isUpgradedByLaterStage(rollout, stage, target),
    )
    // A target is not retried while a later stage has a target in progress, because slots are counted only in one stage.
    .filter(
      ({ stage }) => targetsIn({ stages: stagesAfter(rollout, stage) }, 'intended').length === 0,
    )
    .map(
      ({ target }): Target => ({
        ...target,
        state: 'pending',
        since: momentOf(snapshot, target, now),
      }),
    );
  if (again.length === 0) return rollout;
  const renewed = withTargets(rollout, again);
  const isKept = targetsIn(renewed, 'failed').length > 0 && !OF_THE_END.has(rollout.reason?.code);
  return { ...renewed, phase: 'running', reason: isKept ? rollout.reason : undefined };
}

/**
 * Returns true if the report belongs to the attempt before the retry. A target that waits for its retry does no work, so only an
 * outdated cache can still show work.
 */
export function isSupersededByRetry(snapshot: Snapshot, target: Target): boolean {
  const { exists, observation, versionGap } = factsOf(snapshot, target);
  const ordered = snapshot.plan.controls.retries.get(target.name);
  if (!exists || ordered === undefined || observation.kind === 'none') return false;
  const isOld = Date.parse(observation.attempt) <= ordered;
  // The work succeeded, but did not bring the version, so it must be done again. An attempt that began before the
  // request continues, because its kubelet may still report the version.
  if (observation.kind === 'succeeded' && versionGap !== undefined)
    return isOld && (target.state === 'pending' || Date.parse(target.since) > ordered);
  return (
    isOld &&
    (observation.kind === 'failed' ||
      (target.state === 'pending' && observation.kind !== 'succeeded'))
  );
}

/**
 * Returns the time to record as `since` of a target. The time is later than the request to retry the target, so that
 * the name of the next attempt differs from the name of the previous attempt.
 */
export function momentOf(
  { plan: { controls } }: { readonly plan: Pick<PlanFacts, 'controls'> },
  { name }: Target,
  now: number,
): string {
  return rfc3339(Math.max(now, (controls.retries.get(name) ?? Number.NEGATIVE_INFINITY) + SECOND));
}

function isDue(snapshot: Snapshot, target: Target): boolean {
  if (target.state !== 'failed' && target.state !== 'skipped') return false;
  const ordered = snapshot.plan.controls.retries.get(target.name);
  if (ordered === undefined || Date.parse(target.since) > ordered) return false;
  const { kind } = factsOf(snapshot, target).observation;
  return kind !== 'sent' && kind !== 'working';
}
