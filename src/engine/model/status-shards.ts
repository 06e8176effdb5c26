/** Decides when the record of a large rollout needs status shards, and how much of it fits into one object. */
import type { KubeObject } from '../../kube/resources.ts';
import { onceForEach } from '../../util/memo.ts';
import { isFinal, type Rollout, type Target } from './rollout.ts';

/**
 * The maximum number of targets whose states are recorded in the plan itself. The record of a larger rollout is stored
 * in status shards.
 */
export const PLAN_HOLDS = 5_000;

/**
 * The maximum number of bytes that all targets together may need in a plan. This is two thirds of the 1.5 MiB that etcd
 * accepts in one request. The rest is left for the other parts of the plan.
 */
const PLAN_BYTES = 2 ** 20;

/**
 * The number of bytes that a target needs in addition to its name: up to 90 in the status, and 3 in a spec that lists
 * the target.
 */
const ENTRY_BYTES = 100;

/**
 * The number of bytes that etcd accepts in one request, minus 64 KiB for data that the API server adds, such as managed
 * fields.
 */
const OBJECT_BYTES = 1.5 * 2 ** 20 - 2 ** 16;

/**
 * The maximum number of bytes that the fields of a status need without its targets: states, the reason and the counts.
 */
const STATUS_BYTES = 2 ** 15;

type Named = Pick<Target, 'name'>;

/** Returns the bytes of a text in JSON without its quotes. One letter may take three bytes, and an escaped character takes six. */
function jsonBytes(text: string): number {
  return /^[\w.-]*$/.test(text) ? text.length : Buffer.byteLength(JSON.stringify(text)) - 2;
}

/** The name counts twice, because it is in the status and in a spec that lists the target. */
const bytesOf = ({ name }: Named): number => ENTRY_BYTES + 2 * jsonBytes(name);

/** Returns the bytes that a target takes in the status of a plan. */
export function entryBytes({ name }: Named): number {
  return ENTRY_BYTES + jsonBytes(name);
}

type Recorded = KubeObject & { readonly status?: unknown };

/**
 * Returns the bytes that the targets in the status of this plan may take; negative if the rest of the plan is too large for any status. The
 * result is computed once for each plan, because the computation turns the whole plan into JSON text.
 */
export const roomForTargets = onceForEach(({ status: _status, ...rest }: Recorded): number => {
  return OBJECT_BYTES - STATUS_BYTES - Buffer.byteLength(JSON.stringify(rest));
});

/** Returns true if these lists do not fit into one object, either by the number of targets or by the length of their names. */
export function exceedPlan(lists: readonly (readonly Named[])[], most = PLAN_HOLDS): boolean {
  if (lists.reduce((sum, { length }) => sum + length, 0) > most) return true;
  let bytes = 0;
  for (const targets of lists) for (const target of targets) bytes += bytesOf(target);
  return bytes > PLAN_BYTES;
}

/**
 * Returns true if the record of the rollout needs status shards, because its targets do not fit
 * into the plan.
 */
export function isLarge({ stages }: Rollout): boolean {
  return exceedPlan(stages.map(({ targets }) => targets));
}

/**
 * Returns how many of these targets may be in flight at once; at least one. The plan itself always lists the targets in flight, and
 * has `room` bytes for them in its status.
 */
export function mostInFlight(targets: readonly Named[], room = PLAN_BYTES): number {
  const longestOf = (sizeOf: (target: Named) => number): number =>
    targets.reduce((bytes, target) => Math.max(bytes, sizeOf(target)), ENTRY_BYTES);
  const most = Math.min(PLAN_BYTES / longestOf(bytesOf), room / longestOf(entryBytes), PLAN_HOLDS);
  return Math.max(1, Math.floor(most));
}

/**
 * Returns the targets whose previous state matters for the new record. These are the targets with a new intent, or
 * every target if the record ends the rollout.
 */
export function restingOn(before: Rollout, after: Rollout): Target[] {
  const all = after.stages.flatMap(({ targets }) => targets);
  if (isFinal(after)) return all;
  const known = new Set(before.stages.flatMap(({ targets }) => targets));
  return all.filter((target) => target.state === 'intended' && !known.has(target));
}
