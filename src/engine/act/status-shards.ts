/** How many targets fit in one plan, and when a record needs status shards. */
import type { Rollout, Target } from '../model/recorded.ts';
import { isFinal } from '../model/recorded.ts';

/** At most this many targets stand in a plan. Larger ones are recorded in status shards. */
export const PLAN_HOLDS = 5_000;

/** Bytes for targets in a plan: two thirds of the 1.5 MiB that etcd accepts in one request. The rest of the plan needs room too. */
const PLAN_BYTES = 2 ** 20;

/** Bytes of a target besides its name: up to 90 in the status, 3 in a spec that lists it. */
const ENTRY_BYTES = 100;

type Named = Pick<Target, 'name'>;

/** The name stands in the status, and in a spec that lists it. */
const bytesOf = ({ name }: Named): number => ENTRY_BYTES + 2 * name.length;

/** True if these lists do not fit in one object, by count or by the length of their names. */
export function exceedPlan(lists: readonly (readonly Named[])[], most = PLAN_HOLDS): boolean {
  if (lists.reduce((sum, { length }) => sum + length, 0) > most) return true;
  let bytes = 0;
  for (const targets of lists) for (const target of targets) bytes += bytesOf(target);
  return bytes > PLAN_BYTES;
}

/** True if the record does not fit in its plan. */
export function isLarge({ stages }: Rollout): boolean {
  return exceedPlan(stages.map(({ targets }) => targets));
}

/** How many of these targets may be in flight at once: the plan always lists those. */
export function mostInFlight(targets: readonly Named[]): number {
  const longest = targets.reduce((bytes, target) => Math.max(bytes, bytesOf(target)), ENTRY_BYTES);
  return Math.min(PLAN_HOLDS, Math.floor(PLAN_BYTES / longest));
}

/**
 * Targets whose previous state the record depends on: those that it newly intends, or intends as a new attempt; all of
 * them if it ends the rollout.
 */
export function restingOn(before: Rollout, after: Rollout): Target[] {
  const all = after.stages.flatMap(({ targets }) => targets);
  if (isFinal(after)) return all;
  const known = new Set(before.stages.flatMap(({ targets }) => targets));
  return all.filter((target) => target.state === 'intended' && !known.has(target));
}
