/** Batches the records of a large rollout: many changes in one write, and none of them late. */
import type { Rollout, Target } from '../model/recorded.ts';
import { activeStage } from '../model/stages.ts';
import { limitOf } from '../schedule/slots.ts';
import { isLarge } from './status-shards.ts';

/** Milliseconds between two decisions on a large rollout: each reads all of its targets. */
const REST_MS = 1_000;
/** Milliseconds that a change may wait for more. */
const BATCH_MS = 10_000;
/** A record is due once 1 slot in 16 has changed. It lists everything in flight, so recording each change alone costs too much. */
const SLOTS_PER_CHANGE = 16;

/** Undefined for a smaller rollout: every change is decided on at once. */
export function restOf(rollout: Rollout): number | undefined {
  return isLarge(rollout) ? REST_MS : undefined;
}

/** Milliseconds to wait for more changes before recording; 0 if the record is due. `now` in ms. */
export function batchMs(before: Rollout, after: Rollout, now: number): number {
  const stage = activeStage(before);
  if (!isLarge(before) || !stage || !isMereProgress(before, after)) return 0;
  if (changedSlots(before, after) * SLOTS_PER_CHANGE >= limitOf(stage)) return 0;
  return Math.max(0, lastRecordOf(before, now) + BATCH_MS - now);
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
  const moved = after.stages.flatMap(({ targets }) => targets.filter((target) => !known.has(target)));
  const started = moved.filter(({ state }) => state === 'intended').length;
  return Math.max(started, moved.length - started);
}

/** Ignores times in the future: a clock that was wrong wrote them. */
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
