/** Runs one recorded Plan with doubles, and compares their writes with the recorded writes. */
import { expect } from 'vitest';
import { loadRecording, type Recording } from './recorded-plan.ts';
import { type Stage, type StageOptions, startStage } from './stage.ts';
import { linesByObject } from './write-lines.ts';

/** The doubles that take part, and their options. Without `picks`, the leader picks the targets in the recorded order. */
export type Cast = Omit<StageOptions, 'plane'>;

export interface RecordedRun extends AsyncDisposable {
  readonly stage: Stage;
  readonly recording: Recording;
  /** Waits until the writes of the doubles since the Plan's creation equal the recorded writes. */
  untilAsRecorded(): Promise<void>;
}

/**
 * Creates the Plan after `prepare` has ended. For each object, the test compares every write of autopilot since then:
 * the author (the node itself or the leader), the answer of the API server, and the status, states or patch that was
 * written. It does not compare times, the order of writes to different objects, or the number of conflicts in a row.
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
