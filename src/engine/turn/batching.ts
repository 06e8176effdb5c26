/**
 * Decides how long the leader of a large rollout collects changes before it decides and records again. The leader
 * should write rarely, but must not record too late.
 */
import { activeStage, type Rollout, type Target, withStages } from '../model/rollout.ts';
import { isLarge } from '../model/status-shards.ts';
import { limitOf } from '../schedule/slots.ts';

/** Milliseconds between two decisions on a large rollout, because each decision reads all of its targets. */
const REST_MS = 1_000;
/** Milliseconds for each target between two decisions on a smaller rollout, so that one decision and one record cover many changes. */
const REST_MS_PER_TARGET = 0.05;
/**
 * The smallest number of targets for which the leader pauses between two decisions. For a smaller rollout, the leader
 * decides at every change, because such a decision costs little.
 */
const FEWEST_TO_REST = 100;
/** The most milliseconds that a record waits for more changes. */
const BATCH_MS = 10_000;
/**
 * A record is due when one slot out of this many slots has changed. Each record lists all targets in progress, so
 * recording every change would cost too much.
 */
const SLOTS_PER_CHANGE = 16;

/** Returns the milliseconds between two decisions; undefined for a small rollout, where every change is decided on at once. */
export function restOf(rollout: Rollout): number | undefined {
  if (isLarge(rollout)) return REST_MS;
  const count = withStages(rollout).length;
  return count < FEWEST_TO_REST ? undefined : count * REST_MS_PER_TARGET;
}

/**
 * Returns the milliseconds to wait for more changes before recording; 0 if the record is due. `hasRecorded` means that
 * this leader has just recorded the rollout. The leader then waits a moment before the next record, so that it can
 * first signal the targets that this record starts. `now` is in milliseconds.
 */
export function batchMs(
  before: Rollout,
  after: Rollout,
  now: number,
  hasRecorded: boolean,
): number {
  const stage = activeStage(before);
  if (!stage || !isMereProgress(before, after)) return 0;
  if (!isLarge(before)) return hasRecorded ? (restOf(before) ?? 1) : 0;
  if (changedSlots(before, after) * SLOTS_PER_CHANGE >= limitOf(stage)) return 0;
  const times = withStages(before).map(({ target }) => Date.parse(target.since));
  // Times in the future are left out, because a clock that was wrong may have written them.
  const last = times.filter((time) => time <= now).reduce((a, b) => Math.max(a, b), 0);
  return Math.max(0, last + BATCH_MS - now);
}

/**
 * Returns true if only states of targets changed. The record of such changes can wait. A change of phase, stage or
 * reason is recorded at once.
 */
function isMereProgress(before: Rollout, after: Rollout): boolean {
  return (
    before.phase === 'running' &&
    after.phase === before.phase &&
    after.blocked === before.blocked &&
    after.reason === before.reason &&
    activeStage(after)?.id === activeStage(before)?.id
  );
}

/**
 * Returns the number of changed slots. If one target is done and the next target starts in its place, this counts as
 * one changed slot.
 */
function changedSlots(before: Rollout, after: Rollout): number {
  const known = new Set<Target>(before.stages.flatMap(({ targets }) => targets));
  const moved = after.stages.flatMap(({ targets }) =>
    targets.filter((target) => !known.has(target)),
  );
  const started = moved.filter(({ state }) => state === 'intended').length;
  return Math.max(started, moved.length - started);
}
