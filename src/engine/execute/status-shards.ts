/** Large rollouts: when a record needs status shards, and how its changes are batched, so that none is late. */
import type { KubeObject } from '../../kube/resources.ts';
import { onceForEach } from '../../util/memo.ts';
import { isFinal, type Rollout, type Target } from '../model/rollout.ts';

/** At most this many targets stand in a plan. Larger ones are recorded in status shards. */
export const PLAN_HOLDS = 5_000;

/** Bytes for targets in a plan: two thirds of the 1.5 MiB that etcd accepts in one request. The rest of the plan needs room too. */
const PLAN_BYTES = 2 ** 20;

/** Bytes of a target besides its name: up to 90 in the status, 3 in a spec that lists it. */
const ENTRY_BYTES = 100;

/** Bytes that etcd accepts in one request, less 64 KiB for what only the API server adds, such as the managed fields. */
const OBJECT_BYTES = 1.5 * 2 ** 20 - 2 ** 16;

/** Bytes of a status for its own fields: states, the reason and the counts. */
const STATUS_BYTES = 2 ** 15;

type Named = Pick<Target, 'name'>;

/** Bytes of a text in JSON, without its quotes: a letter may take three bytes, and a character that is escaped six. */
function jsonBytes(text: string): number {
  return /^[\w.-]*$/.test(text) ? text.length : Buffer.byteLength(JSON.stringify(text)) - 2;
}

/** The name stands in the status, and in a spec that lists it. */
const bytesOf = ({ name }: Named): number => ENTRY_BYTES + 2 * jsonBytes(name);

/** Bytes of a target in the status of a plan. */
export function entryBytes({ name }: Named): number {
  return ENTRY_BYTES + jsonBytes(name);
}

type Recorded = KubeObject & { readonly status?: unknown };

/**
 * Bytes that the targets in the status of this plan may take; negative if the rest of the plan leaves too little for any status.
 * Found once for each plan: it takes the whole of it as text.
 */
export const roomForTargets = onceForEach(({ status: _status, ...rest }: Recorded): number => {
  return OBJECT_BYTES - STATUS_BYTES - Buffer.byteLength(JSON.stringify(rest));
});

/** True if these lists do not fit in one object, by count or by the length of their names. */
export function exceedPlan(lists: readonly (readonly Named[])[], most = PLAN_HOLDS): boolean {
  if (lists.reduce((sum, { length }) => sum + length, 0) > most) return true;
  let bytes = 0;
  for (const targets of lists) for (const target of targets) bytes += bytesOf(target);
  return bytes > PLAN_BYTES;
}

export function isLarge({ stages }: Rollout): boolean {
  return exceedPlan(stages.map(({ targets }) => targets));
}

/** How many of these targets may be in flight at once, at least one: the plan always lists those, and has this room for them. */
export function mostInFlight(targets: readonly Named[], room = PLAN_BYTES): number {
  const longestOf = (sizeOf: (target: Named) => number): number =>
    targets.reduce((bytes, target) => Math.max(bytes, sizeOf(target)), ENTRY_BYTES);
  const most = Math.min(PLAN_BYTES / longestOf(bytesOf), room / longestOf(entryBytes), PLAN_HOLDS);
  return Math.max(1, Math.floor(most));
}

/** Targets whose previous state the record depends on: those with a new intent; all of them if it ends the rollout. */
export function restingOn(before: Rollout, after: Rollout): Target[] {
  const all = after.stages.flatMap(({ targets }) => targets);
  if (isFinal(after)) return all;
  const known = new Set(before.stages.flatMap(({ targets }) => targets));
  return all.filter((target) => target.state === 'intended' && !known.has(target));
}
