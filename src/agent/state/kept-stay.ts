/**
 * Counts how long the agent keeps a file for a roll-back. The file is the previous binary, or an airgap bundle of the
 * previous version. The time begins when the upgrade has succeeded, and counts only while an agent runs.
 */
import { anAmount, aText, exactly, type Members } from '../../signal/members.ts';
import { type Clock, rfc3339 } from '../../util/clock.ts';

export const STAY = {
  /**
   * The milliseconds for which the file will still stay. They count only while an agent runs. If the value is absent,
   * the file stays until the next upgrade.
   */
  leftMs: anAmount,
  /**
   * The time at which the file will be removed, by the wall clock, in RFC 3339 format. It is for people. The removal
   * itself depends on `leftMs`.
   */
  until: aText,
  /** True once the upgrade has succeeded. Before that the file is never removed, because a roll-back needs it. */
  settled: exactly(true),
};
export type Stay = Members<typeof STAY>;

/**
 * The reason why the agent has removed a file that it kept. `Expired`: its time limit has passed. `DiskFull`: a
 * download needed the disk space.
 */
export type RemovalReason = 'Expired' | 'DiskFull';

/** Returns the removal reason; undefined if the value is not a removal reason. */
export function aRemovalReason(value: unknown): RemovalReason | undefined {
  return value === 'Expired' || value === 'DiskFull' ? value : undefined;
}

export interface StayCounter {
  /** Returns `stay` with a time limit that starts now. Call this when the upgrade has succeeded. */
  readonly begin: (stay: Stay) => Stay;
  /**
   * Counts the time that has passed. If the time limit has passed, it calls `over`. If the record is out of date, it
   * calls `save` with the members to save. If `save` rejects, the next call counts the same time again.
   */
  readonly pass: (
    stay: Stay,
    then: {
      readonly over: () => Promise<void>;
      readonly save: (next: Stay) => Promise<void>;
    },
  ) => Promise<void>;
}

/**
 * Milliseconds between two saves of the counted time. A restart of the agent loses at most this much of the counted
 * time, so the file stays that much longer.
 */
const SAVE_MS = 3_600_000;
/**
 * `until` is corrected only if it is wrong by at least this many milliseconds, because each correction is a write to
 * the API server.
 */
const DRIFT_MS = 600_000;

/** Returns a counter that starts now. Create one counter for each record. */
export function stayCounter(clock: Pick<Clock, 'now' | 'monotonic'>): StayCounter {
  let counted = clock.monotonic();
  const untilOf = (leftMs: number | undefined): Pick<Stay, 'until'> =>
    leftMs === undefined ? {} : { until: rfc3339(clock.now() + leftMs) };
  return {
    begin(stay) {
      counted = clock.monotonic();
      return { ...stay, settled: true, ...untilOf(stay.leftMs) };
    },
    async pass(stay, { over, save }) {
      const { settled, leftMs } = stay;
      if (settled !== true || leftMs === undefined) return;
      // Only the steady clock counts, because a change of the wall clock must not remove the file early.
      const passed = clock.monotonic() - counted;
      const left = Math.max(0, leftMs - passed);
      if (left === 0) return await over();
      const expected = clock.now() + left;
      const isRight = Math.abs(Date.parse(stay.until ?? '') - expected) <= DRIFT_MS;
      if (isRight && passed < SAVE_MS) return;
      await save({ ...stay, leftMs: left, ...(isRight ? {} : untilOf(left)) });
      counted += passed;
    },
  };
}
