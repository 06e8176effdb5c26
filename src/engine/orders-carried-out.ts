/** Owns trying failed targets again because somebody ordered it. */
import { rfc3339 } from '../util/clock.ts';
import { factsOf } from './gate-input.ts';
import type { Campaign, Snapshot, Stage, Target } from './model.ts';
import { targetsIn, withTargets } from './stages.ts';

/** Milliseconds: finer than that no time is recorded. */
const SECOND = 1000;

/** The very same campaign where nothing is to be tried again. A target that still works must come to its end first. */
export function reopened(snapshot: Snapshot, now: number): Campaign {
  const { campaign, orders } = snapshot;
  if (orders.retries.size === 0 || orders.abort !== undefined) return campaign;
  const again = campaign.stages.flatMap((stage) =>
    stage.targets.filter((target) => isDue(snapshot, target) && isFree(campaign, stage, target)),
  );
  if (again.length === 0) return campaign;
  const renewed = withTargets(
    campaign,
    again.map((target): Target => ({ ...target, state: 'pending', since: momentOf(snapshot, target, now) })),
  );
  const failures = targetsIn(renewed, 'failed').length;
  return { ...renewed, phase: 'running', reason: failures > 0 ? campaign.reason : undefined };
}

/**
 * What it reported of an attempt that was begun before somebody ordered another one. Once it waits for that one, it is at
 * work on the old one only in what an old cache shows.
 */
export function isForgotten(snapshot: Snapshot, target: Target): boolean {
  const { exists, observation } = factsOf(snapshot, target);
  const ordered = snapshot.orders.retries.get(target.name);
  if (!exists || ordered === undefined || observation.kind === 'none') return false;
  const isOld = Date.parse(observation.attempt) <= ordered;
  return isOld && (observation.kind === 'failed' || (target.state === 'pending' && observation.kind !== 'succeeded'));
}

/**
 * When what is recorded of a target now is said to have happened: of one that is to be tried again after the order, to
 * the second, so that neither its next attempt nor the end of that is taken for one that is forgotten.
 */
export function momentOf({ orders }: Pick<Snapshot, 'orders'>, { name }: Target, now: number): string {
  return rfc3339(Math.max(now, (orders.retries.get(name) ?? Number.NEGATIVE_INFINITY) + SECOND));
}

/**
 * True where a later stage has brought the very target further since it failed: to try it again would take it back. What
 * keeps the version as it is takes nothing back.
 */
export function isOutdone({ stages }: Campaign, own: Stage, { name }: Target): boolean {
  if (own.keepsVersion === true) return false;
  return laterThan(stages, own).some(
    ({ role, keepsVersion, targets }) =>
      role === own.role &&
      keepsVersion !== true &&
      targets.some((other) => other.name === name && other.state === 'done'),
  );
}

/** What is in flight in a later stage finishes first: only the slots of one stage are counted at a time. */
function isFree(campaign: Campaign, stage: Stage, target: Target): boolean {
  const later = laterThan(campaign.stages, stage);
  return targetsIn({ stages: later }, 'intended').length === 0 && !isOutdone(campaign, stage, target);
}

function laterThan(stages: readonly Stage[], { id }: Stage): readonly Stage[] {
  return stages.slice(stages.findIndex((each) => each.id === id) + 1);
}

function isDue(snapshot: Snapshot, target: Target): boolean {
  if (target.state !== 'failed') return false;
  const ordered = snapshot.orders.retries.get(target.name);
  if (ordered === undefined || Date.parse(target.since) > ordered) return false;
  const { kind } = factsOf(snapshot, target).observation;
  return kind !== 'sent' && kind !== 'working';
}
