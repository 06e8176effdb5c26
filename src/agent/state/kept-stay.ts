/**
 * Counts how long a file stays that the agent keeps for a way back: the previous binary, or the airgap bundles of the
 * previous version. The time begins when the upgrade has succeeded, and counts only while an agent runs.
 */
import { anAmount, aText, exactly, type Members } from '../../signal/members.ts';
import { type Clock, rfc3339 } from '../../util/clock.ts';

export const STAY = {
  /** Milliseconds that the file still stays, counted while an agent runs. If it is absent, the file stays until the next upgrade. */
  leftMs: anAmount,
  /** When the file is removed, by the wall clock, in RFC 3339 format. It is for people: `leftMs` decides. */
  until: aText,
  /** True once the upgrade has succeeded. Before that the file is never removed, because a roll-back needs it. */
  settled: exactly(true),
};
export type Stay = Members<typeof STAY>;

/** Says why the agent has removed a file that it kept: its time was over, or a download needed the room. */
export type RemovalReason = 'Expired' | 'DiskFull';

/** Returns the reason; undefined if the value is none. */
export function aRemovalReason(value: unknown): RemovalReason | undefined {
  return value === 'Expired' || value === 'DiskFull' ? value : undefined;
}

export interface StayCounter {
  /** Returns the stay that begins now. Call it when the upgrade has succeeded. */
  readonly begin: (stay: Stay) => Stay;
  /**
   * Counts the time that has passed. Calls `over` if the stay has ended, and `save` with the members to save if the
   * record is out of date. If `save` rejects, the same time is counted again.
   */
  readonly pass: (
    stay: Stay,
    then: {
      readonly over: () => Promise<void>;
      readonly save: (next: Stay) => Promise<void>;
    },
  ) => Promise<void>;
}

/** Milliseconds between two saves of the counted time. A restart of the agent keeps the file at most that much longer. */
const SAVE_MS = 3_600_000;
/** Milliseconds by which `until` must be wrong before it is corrected, because each correction is a write to the API server. */
const DRIFT_MS = 600_000;

/** Returns a counter that counts from now. Use one for each record. */
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
      // Only the steady clock counts, so that a jump of the wall clock does not remove the file early.
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
