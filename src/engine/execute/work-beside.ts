/** Writes that the next decision does not wait for: records of progress, and signals for targets that are recorded ahead. */
import { type Clock, sleep } from '../../util/clock.ts';
import type { Signalling } from '../model/decision.ts';

/** Milliseconds between the starts of two records: each lists all that is in flight. */
const RECORD_EVERY_MS = 1_000;
/** Between two decisions meanwhile, so that one follows many changes. */
const DECIDE_EVERY_MS = 175;

export type WorkBeside = ReturnType<typeof workBeside>;

/** For one plan. Each piece of work resolves with true if the plan was as it was decided on. */
export function workBeside(clock: Clock) {
  const running = new Map<Promise<boolean>, readonly Signalling[]>();
  let recordedAt = Number.NEGATIVE_INFINITY;
  let recording: Promise<boolean> | undefined;
  let [isHeld, refusing] = [false, 0];
  const begin = (work: Promise<boolean>, signals: readonly Signalling[]): void => {
    running.set(work, signals);
    // `next` and `end` hear of a failure.
    work.catch(() => undefined);
  };
  /** One record at a time. */
  const recordDueMs = (): number => Math.max(0, recordedAt + RECORD_EVERY_MS - clock.monotonic());
  const isRecordDue = (): boolean => !recording && !isHeld && recordDueMs() === 0;
  return {
    isRunning: () => running.size > 0,
    isRecordDue,
    recordDueMs,
    /** It is due at once, or after the one that is on its way. */
    hastenRecord(): void {
      if (!recording) recordedAt = Number.NEGATIVE_INFINITY;
    },
    /** What the API server refuses for good is recorded with the signals, which no other record may disturb. */
    async recordRefusals(work: Promise<boolean>): Promise<boolean> {
      isHeld = true;
      refusing++;
      return await work.finally(() => refusing--);
    },
    allowRecords: (): void => void (isHeld = refusing > 0),
    record(work: Promise<boolean>): void {
      [recordedAt, recording] = [clock.monotonic(), work];
      begin(work, []);
    },
    send: begin,
    unsent(signals: readonly Signalling[]): readonly Signalling[] {
      const sending = new Set([...running.values()].flat().map(({ target }) => target.key));
      return signals.filter(({ target }) => !sending.has(target.key));
    },
    /** Resolves once something has ended or is to be decided, with false if a piece of work found the plan changed. */
    async next(isDue: () => boolean): Promise<boolean> {
      const ended: Promise<boolean>[] = [];
      for (const work of running.keys())
        void Promise.allSettled([work]).then(() => ended.push(work));
      do await sleep(clock, DECIDE_EVERY_MS);
      while (ended.length === 0 && !isDue() && !isRecordDue());
      for (const work of ended) running.delete(work);
      if (recording && !running.has(recording)) recording = undefined;
      return (await Promise.all(ended)).every(Boolean);
    },
    async end(): Promise<void> {
      await Promise.allSettled(running.keys());
      running.clear();
      recording = undefined;
    },
  };
}
