/** Owns how often a large rollout is looked at and written: many changes at a time, and none of them late. */

import type { Rollout, Target } from '../model/recorded.ts';
import { activeStage } from '../model/stages.ts';
import { limitOf } from '../schedule/slots.ts';
import { isLarge } from './status-shards.ts';

/** Milliseconds between two looks at a large rollout, each of which reads all of its targets. */
const REST_MS = 1_000;
/** Milliseconds that a change waits for others at most. */
const HELD_MS = 10_000;
/**
 * A record is due once one slot in so many has changed hands. It lists everything in flight, some 100 bytes each: so each
 * target costs as many times 100 bytes, and not more than 1 slot in 16 is idle for it.
 */
const SLOTS_PER_CHANGE = 16;

/** Undefined where every change is looked at on its own, as in smaller ones. */
export function restOf(rollout: Rollout): number | undefined {
  return isLarge(rollout) ? REST_MS : undefined;
}

/** Milliseconds for which the record had better wait for more; 0 where it is due. `now` in ms. */
export function heldBackMs(before: Rollout, after: Rollout, now: number): number {
  const stage = activeStage(before);
  if (!isLarge(before) || !stage || !isMereProgress(before, after)) return 0;
  if (changedSlots(before, after) * SLOTS_PER_CHANGE >= limitOf(stage)) return 0;
  return Math.max(0, lastRecordOf(before, now) + HELD_MS - now);
}

/** Whoever is done and whoever follows can wait. What ends, fails or begins anew is for others to know at once. */
function isMereProgress(before: Rollout, after: Rollout): boolean {
  return (
    before.phase === 'running' &&
    after.phase === before.phase &&
    after.blocked === before.blocked &&
    after.reason === before.reason &&
    activeStage(after)?.id === activeStage(before)?.id
  );
}

/** One that is done and the one that follows it change one slot. */
function changedSlots(before: Rollout, after: Rollout): number {
  const known = new Set<Target>(before.stages.flatMap(({ targets }) => targets));
  const moved = after.stages.flatMap(({ targets }) => targets.filter((target) => !known.has(target)));
  const started = moved.filter(({ state }) => state === 'intended').length;
  return Math.max(started, moved.length - started);
}

/** What is said to have been recorded later than now was written by a clock that has been put right since, and says nothing. */
function lastRecordOf({ stages }: Rollout, now: number): number {
  let last = 0;
  for (const { targets } of stages) {
    for (const { since } of targets) {
      const recorded = Date.parse(since);
      if (recorded <= now) last = Math.max(last, recorded);
    }
  }
  return last;
}
