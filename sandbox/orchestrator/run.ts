/** The state of one Machine's update by several updaters, and how each answer changes it. Plain JSON. */
import type { UpdateMachineAnswer } from '../../src/api/capi/hooks.ts';
import type { Composition, UpdaterStep } from './composition.ts';

export interface Run {
  /** Hash of the desired objects. */
  readonly id: string;
  readonly state: 'running' | 'done' | 'failed';
  readonly steps: readonly UpdaterStep[];
  /** Index of the current step; the number of steps once all are done. */
  readonly at: number;
  /** Time of the next call, in milliseconds since the Unix epoch. */
  readonly due: number;
  /** Failed calls of this step in a row. */
  readonly failures: number;
  /** Why it failed, or the last message of the updater. */
  readonly message?: string;
}

/** Then the run fails; with the backoff below, after about eight minutes. */
const MAX_FAILURES = 20;
const FIRST_PAUSE_MS = 1000;
const STEP_MS = 5;
const LONGEST_PAUSE_MS = 60_000;

/** If any change is not covered, the run fails before it starts. */
export function begin(id: string, { steps, uncovered, rejected }: Composition, now: number): Run {
  const run = { id, steps, at: 0, due: now, failures: 0 };
  if (uncovered.length === 0) return { ...run, state: steps.length === 0 ? 'done' : 'running' };
  const ignored = rejected.map(({ updater, reason }) => `; answer of ${updater} ignored: ${reason}`);
  return {
    ...run,
    state: 'failed',
    message: `InsufficientCoverage: no updater covers ${uncovered.join(', ')}${ignored.join('')}`,
  };
}

/** The run after an answer or an error; `now` in milliseconds. */
export function after(run: Run, answer: UpdateMachineAnswer | Error, now: number): Run {
  if (answer instanceof Error) return afterFailure(run, answer.message, now);
  const { status, retryAfterSeconds, message } = answer;
  if (status !== 'Success') return afterFailure(run, message ?? 'Failure without a message', now);
  // Cluster API treats a negative number as done; here it is an error.
  if (!Number.isInteger(retryAfterSeconds) || retryAfterSeconds < 0) {
    return {
      ...run,
      state: 'failed',
      message: `retryAfterSeconds: ${retryAfterSeconds} is not valid; use 0 or a positive integer`,
    };
  }
  const { message: _, ...rest } = run;
  const latest = message === undefined ? {} : { message };
  if (retryAfterSeconds > 0) return { ...rest, ...latest, failures: 0, due: now + retryAfterSeconds * 1000 };
  const at = run.at + 1;
  return { ...rest, at, failures: 0, due: now, state: at === run.steps.length ? 'done' : 'running' };
}

function afterFailure(run: Run, message: string, now: number): Run {
  const failures = run.failures + 1;
  if (failures > MAX_FAILURES) return { ...run, failures, state: 'failed', message };
  const pause = Math.min(FIRST_PAUSE_MS + STEP_MS * 2 ** failures, LONGEST_PAUSE_MS);
  return { ...run, failures, due: now + pause, message };
}
