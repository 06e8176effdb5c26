/** Carries out a run. The state is saved before every call, so that a new process continues where the last one ended. */
import { createHash } from 'node:crypto';
import type { Triple, UpdateMachineAnswer } from '../../src/api/capi/hooks.ts';
import { type Clock, sleep } from '../../src/util/clock.ts';
import { stableStringify } from '../../src/util/json.ts';
import { type Candidate, compose, desiredAt } from './composition.ts';
import { after, begin, type Run } from './run.ts';

export interface Updater extends Candidate {
  /** Rejects without an answer. */
  update(desired: Triple): Promise<UpdateMachineAnswer>;
}

export interface Subject {
  /** The saved run; undefined if there is none, or if it is not readable. */
  load(): Promise<Run | undefined>;
  /** Rejects if another process saved in between. */
  save(run: Run): Promise<void>;
  /** Writes the desired Machine into the API, before the updater is called. Idempotent. */
  write(desired: Triple): Promise<void>;
}

export interface RunnerParts {
  readonly subject: Subject;
  /** In order. */
  readonly updaters: readonly Updater[];
  readonly clock: Clock;
}

/** Resolves with the finished run, done or failed; may be called again with the same arguments after a crash. */
export async function runUpdate(
  parts: RunnerParts,
  current: Triple,
  desired: Triple,
  abort?: AbortSignal,
): Promise<Run> {
  const { subject, updaters, clock } = parts;
  let run = await loaded(parts, current, desired);
  while (run.state === 'running') {
    await sleep(clock, Math.max(0, run.due - clock.now()), abort);
    const step = run.steps[run.at];
    const updater = updaters.find(({ name }) => name === step?.updater);
    const wanted = desiredAt(current, desired, run.steps, run.at);
    await subject.write(wanted);
    run = after(run, await answerOf(updater, wanted), clock.now());
    await subject.save(run);
  }
  return run;
}

/** The steps of a saved run stay: `current` may already contain the changes of the first ones. */
async function loaded({ subject, updaters, clock }: RunnerParts, current: Triple, desired: Triple): Promise<Run> {
  const id = createHash('sha256').update(stableStringify(desired)).digest('hex').slice(0, 16);
  const saved = await subject.load();
  if (saved?.id === id && saved.state !== 'failed') return saved;
  const run = begin(id, await compose(current, desired, updaters), clock.now());
  // A run that cannot start is returned to the caller, but not saved on the Machine.
  if (run.state !== 'failed') await subject.save(run);
  return run;
}

async function answerOf(updater: Updater | undefined, desired: Triple): Promise<UpdateMachineAnswer | Error> {
  if (!updater) return new Error('the updater of this step is no longer registered');
  return await updater
    .update(desired)
    .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
}
