/** Owns trying failed targets again because somebody ordered it. */
import { rfc3339 } from '../util/clock.ts';
import { factsOf } from './gate-input.ts';
import type { Campaign, Snapshot, Target } from './model.ts';
import { targetsIn, withTargets } from './stages.ts';

/** Milliseconds: finer than that no time is recorded. */
const SECOND = 1000;

/** The very same campaign where nothing is to be tried again. A target that still works must come to its end first. */
export function reopened(snapshot: Snapshot, now: number): Campaign {
  const { campaign, orders } = snapshot;
  if (orders.retries.size === 0 || orders.abort !== undefined) return campaign;
  const again = targetsIn(campaign, 'failed').filter((target) => isDue(snapshot, target));
  if (again.length === 0) return campaign;
  const renewed = withTargets(
    campaign,
    again.map((target): Target => ({ ...target, state: 'pending', since: momentOf(snapshot, target, now) })),
  );
  const failures = targetsIn(renewed, 'failed').length;
  return { ...renewed, phase: 'running', reason: failures > 0 ? campaign.reason : undefined };
}

/** What it reported of an attempt that was begun before somebody ordered another one. */
export function isForgotten(snapshot: Snapshot, target: Target): boolean {
  const { exists, observation } = factsOf(snapshot, target);
  const ordered = snapshot.orders.retries.get(target.name);
  return exists && observation.kind === 'failed' && ordered !== undefined && Date.parse(observation.attempt) <= ordered;
}

/**
 * When what is recorded of a target now is said to have happened: of one that is to be tried again after the order, to
 * the second, so that neither its next attempt nor the end of that is taken for one that is forgotten.
 */
export function momentOf({ orders }: Pick<Snapshot, 'orders'>, { name }: Target, now: number): string {
  return rfc3339(Math.max(now, (orders.retries.get(name) ?? Number.NEGATIVE_INFINITY) + SECOND));
}

function isDue(snapshot: Snapshot, target: Target): boolean {
  const ordered = snapshot.orders.retries.get(target.name);
  if (ordered === undefined || Date.parse(target.since) > ordered) return false;
  const { kind } = factsOf(snapshot, target).observation;
  return kind !== 'sent' && kind !== 'working';
}
