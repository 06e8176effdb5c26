/** Owns the state of one Machine's update over several updaters, and what each answer makes of it. Pure, and plain JSON. */
import type { UpdateMachineAnswer } from '../../../api/capi/hooks.ts';
import type { Composition, UpdaterStep } from './composition.ts';

export interface Run {
  /** Of what is desired: a run counts for nothing else. */
  readonly id: string;
  readonly state: 'running' | 'done' | 'failed';
  readonly steps: readonly UpdaterStep[];
  /** Index of the step that is asked for; as many as there are steps once all are done. */
  readonly at: number;
  /** Milliseconds since the Unix epoch: not before this is anybody called. */
  readonly due: number;
  /** Calls of this step in a row that failed. */
  readonly failures: number;
  /** Why it failed, or what the updater said last. */
  readonly message?: string;
}

/** Failures in a row after which nobody is asked any more; with the pauses below they last about eight minutes. */
const MAX_FAILURES = 20;
const FIRST_PAUSE_MS = 1000;
const STEP_MS = 5;
const LONGEST_PAUSE_MS = 60_000;

/** Fail closed: what nobody covers is named, and nothing begins. */
export function begin(id: string, { steps, uncovered, rejected }: Composition, now: number): Run {
  const run = { id, steps, at: 0, due: now, failures: 0 };
  if (uncovered.length === 0) return { ...run, state: steps.length === 0 ? 'done' : 'running' };
  const doubts = rejected.map(({ updater, reason }) => `; ${updater} is not believed: ${reason}`);
  return {
    ...run,
    state: 'failed',
    message: `InsufficientCoverage: nobody covers ${uncovered.join(', ')}${doubts.join('')}`,
  };
}

/** The run after an answer, or after an error in its place; `now` in milliseconds. */
export function after(run: Run, answer: UpdateMachineAnswer | Error, now: number): Run {
  if (answer instanceof Error) return afterFailure(run, answer.message, now);
  const { status, retryAfterSeconds, message } = answer;
  if (status !== 'Success') return afterFailure(run, message ?? 'no reason was given', now);
  // Others take a negative number for the end; here it is one that nobody can have meant.
  if (!Number.isInteger(retryAfterSeconds) || retryAfterSeconds < 0) {
    return { ...run, state: 'failed', message: `retryAfterSeconds is ${retryAfterSeconds}: a protocol error` };
  }
  const { message: _, ...rest } = run;
  const said = message === undefined ? {} : { message };
  if (retryAfterSeconds > 0) return { ...rest, ...said, failures: 0, due: now + retryAfterSeconds * 1000 };
  const at = run.at + 1;
  return { ...rest, at, failures: 0, due: now, state: at === run.steps.length ? 'done' : 'running' };
}

function afterFailure(run: Run, message: string, now: number): Run {
  const failures = run.failures + 1;
  if (failures > MAX_FAILURES) return { ...run, failures, state: 'failed', message };
  const pause = Math.min(FIRST_PAUSE_MS + STEP_MS * 2 ** failures, LONGEST_PAUSE_MS);
  return { ...run, failures, due: now + pause, message };
}
