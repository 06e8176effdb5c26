/** Owns trying failed targets again because somebody ordered it. */
import { rfc3339 } from '../util/clock.ts';
import { factsOf } from './gate-input.ts';
import type { Campaign, Snapshot, Target } from './model.ts';
import { targetsIn, withTargets } from './stages.ts';

/** The very same campaign where nothing is to be tried again. A target that still works must come to its end first. */
export function reopened(snapshot: Snapshot, now: number): Campaign {
  const { campaign, orders } = snapshot;
  if (orders.retries.size === 0 || orders.abort !== undefined) return campaign;
  const again = targetsIn(campaign, 'failed').filter((target) => isDue(snapshot, target));
  if (again.length === 0) return campaign;
  const since = rfc3339(now);
  const renewed = withTargets(
    campaign,
    again.map((target): Target => ({ ...target, state: 'pending', since })),
  );
  const failures = targetsIn(renewed, 'failed').length;
  return { ...renewed, phase: 'running', reason: failures > 0 ? campaign.reason : undefined };
}

function isDue(snapshot: Snapshot, target: Target): boolean {
  const ordered = snapshot.orders.retries.get(target.name);
  if (ordered === undefined || Date.parse(target.since) > ordered) return false;
  const { kind } = factsOf(snapshot, target).observation;
  return kind !== 'sent' && kind !== 'working';
}
