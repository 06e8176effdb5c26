/** One recorded Plan, run by doubles, and the comparison of what they write with what was recorded. */
import { expect } from 'vitest';
import { loadRecording, type Recording } from './recorded-plan.ts';
import { type Stage, type StageOptions, startStage } from './stage.ts';
import { linesByObject } from './write-lines.ts';

/** Who takes part, and how; whom the leader picks is as recorded where it isn't said. */
export type Cast = Omit<StageOptions, 'plane'>;

export interface RecordedRun extends AsyncDisposable {
  readonly stage: Stage;
  readonly recording: Recording;
  /** Waits until what the doubles wrote since the Plan's creation is what was recorded. */
  untilAsRecorded(): Promise<void>;
}

/**
 * Creates the Plan once `prepare` is over. Compared is, for each object, every write of autopilot since then: who made it (the
 * node itself, the leader), how it was answered, and the status, states or patch in it. Not compared are times, the order
 * between objects, and how often a conflict came in a row.
 */
export async function runRecorded(
  name: string,
  cast: Cast,
  prepare: (stage: Stage) => Promise<void> | void = () => undefined,
): Promise<RecordedRun> {
  const recording = loadRecording(name);
  await using things = new AsyncDisposableStack();
  const stage = things.use(await startStage({ picks: recording.picks, ...cast }));
  await prepare(stage);
  const start = stage.recorder.writes.length;
  await stage.create(recording.plan(stage.downloads));
  const everything = things.move();
  return {
    stage,
    recording,
    untilAsRecorded: async () =>
      await stage.until(() =>
        expect(linesByObject(stage.recorder.writes.slice(start))).toEqual(
          linesByObject(recording.writes),
        ),
      ),
    [Symbol.asyncDispose]: async () => await everything.disposeAsync(),
  };
}
