/** Large rollouts: when a record needs status shards, and how its changes are batched, so that none is late. */
import type { KubeObject } from '../../kube/resources.ts';
import { onceForEach } from '../../util/memo.ts';
import {
  activeStage,
  isFinal,
  type Rollout,
  type Target,
  targetsIn,
  withStages,
} from '../model/rollout.ts';
import { limitOf } from '../schedule/slots.ts';

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

/** Milliseconds between two decisions on a large rollout: each reads all of its targets. */
const REST_MS = 1_000;
/** The same for each target of a smaller one, so that one decision and one record follow many changes. */
const REST_MS_PER_TARGET = 0.05;
/** A smaller one is decided on at every change: that costs little. */
const FEWEST_TO_REST = 100;
/** Milliseconds that a change may wait for more. */
const BATCH_MS = 10_000;
/** A record is due once 1 slot in 16 has changed. It lists everything in flight, so recording each change alone costs too much. */
const SLOTS_PER_CHANGE = 16;

/** Undefined for a small rollout: every change is decided on at once. */
export function restOf(rollout: Rollout): number | undefined {
  if (isLarge(rollout)) return REST_MS;
  const count = withStages(rollout).length;
  return count < FEWEST_TO_REST ? undefined : count * REST_MS_PER_TARGET;
}

/** Milliseconds to wait for more changes before recording; 0 if the record is due. What `records` before it start goes first. */
export function batchMs(before: Rollout, after: Rollout, now: number, records: number): number {
  const stage = activeStage(before);
  if (!stage || !isMereProgress(before, after)) return 0;
  if (!isLarge(before)) return records === 0 ? 0 : (restOf(before) ?? 1);
  if (changedSlots(before, after) * SLOTS_PER_CHANGE >= limitOf(stage)) return 0;
  const times = withStages(before).map(({ target }) => Date.parse(target.since));
  // A clock that was wrong wrote times in the future.
  const last = times.filter((time) => time <= now).reduce((a, b) => Math.max(a, b), 0);
  return Math.max(0, last + BATCH_MS - now);
}

/** True if the next targets can start while this is recorded. Not if one loses its place: it must be certain that it has not started. */
export function allowsStarts(before: Rollout, after: Rollout): boolean {
  const { next = [] } = activeStage(before) ?? {};
  if (next.length === 0 || !isMereProgress(before, after)) return false;
  const places = new Set(after.stages.flatMap((stage) => stage.next ?? []));
  const pending = new Set(targetsIn(after, 'pending').map(({ key }) => key));
  return next.every((key) => places.has(key) || !pending.has(key));
}

/** Progress can wait. A change of phase, stage or reason is recorded at once. */
function isMereProgress(before: Rollout, after: Rollout): boolean {
  return (
    before.phase === 'running' &&
    after.phase === before.phase &&
    after.blocked === before.blocked &&
    after.reason === before.reason &&
    activeStage(after)?.id === activeStage(before)?.id
  );
}

/** A target that is done and its successor change one slot. */
function changedSlots(before: Rollout, after: Rollout): number {
  const known = new Set<Target>(before.stages.flatMap(({ targets }) => targets));
  const moved = after.stages.flatMap(({ targets }) =>
    targets.filter((target) => !known.has(target)),
  );
  const started = moved.filter(({ state }) => state === 'intended').length;
  return Math.max(started, moved.length - started);
}
