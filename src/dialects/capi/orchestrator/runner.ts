/** Owns carrying out a run: the state is kept before every call, so that whoever comes next goes on where this one was. */
import { createHash } from 'node:crypto';
import type { Triple, UpdateMachineAnswer } from '../../../api/capi/hooks.ts';
import { type Clock, sleep } from '../../../util/clock.ts';
import { stableStringify } from '../../../util/json.ts';
import { type Candidate, compose, desiredAt } from './composition.ts';
import { after, begin, type Run } from './run.ts';

export interface Updater extends Candidate {
  /** Rejects where no answer comes. */
  update(desired: Triple): Promise<UpdateMachineAnswer>;
}

/** One Machine as the runner needs it. */
export interface Subject {
  /** What was kept last; undefined where nothing was, or what nobody can read. */
  load(): Promise<Run | undefined>;
  /** Resolves once it is kept; rejects where somebody else kept something since. */
  save(run: Run): Promise<void>;
  /** Writes what the Machine shall be into the API, before anybody is told to make it so. May be repeated. */
  write(desired: Triple): Promise<void>;
}

export interface RunnerParts {
  readonly subject: Subject;
  /** In the order in which they are asked. */
  readonly updaters: readonly Updater[];
  readonly clock: Clock;
}

/** Resolves with the end of the run, be it good or bad; may be called again with the same arguments after any crash. */
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

/** The plan of a run stays as it was made: what the first steps did may already stand in `current`. */
async function loaded({ subject, updaters, clock }: RunnerParts, current: Triple, desired: Triple): Promise<Run> {
  const id = createHash('sha256').update(stableStringify(desired)).digest('hex').slice(0, 16);
  const kept = await subject.load();
  if (kept?.id === id && kept.state !== 'failed') return kept;
  const run = begin(id, await compose(current, desired, updaters), clock.now());
  // A refusal is told to whoever asked; on the Machine it leaves no trace.
  if (run.state !== 'failed') await subject.save(run);
  return run;
}

async function answerOf(updater: Updater | undefined, desired: Triple): Promise<UpdateMachineAnswer | Error> {
  if (!updater) return new Error('the updater of this step is not registered any more');
  return await updater
    .update(desired)
    .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
}
