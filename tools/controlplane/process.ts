/** Runs one component: starts it with a log file, waits until it is ready, and stops it reliably. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { lastLines } from './run.ts';

export interface ProcessOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Variables in addition to PATH, HOME and NODE_COMPILE_CACHE. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** Contains `logs/` and `pids/`; also the home and working directory of the process. */
  readonly directory: string;
  /** Called repeatedly until it returns true. */
  readonly ready: () => Promise<boolean>;
  readonly clock: Clock;
  readonly abort?: AbortSignal | undefined;
}

export interface Process {
  readonly pid: number;
  /** Sends SIGTERM, then SIGKILL if the process has not ended in time. Resolves when it has ended. */
  stop(): Promise<void>;
}

/** A loaded machine with two cores needs a few seconds. This limit ends a start that hangs. */
const READY_MS = 120_000;
const STOP_MS = 10_000;
const POLL_MS = 200;

const { PATH, NODE_COMPILE_CACHE } = process.env;
/** The cache of compiled code of Node.js, because a cluster starts many processes of one program. */
const COMPILED = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };

/** Starts a process. Throws REFIT_TESTENV with the end of the log if the process ends early or is not ready in time. */
export async function startProcess(options: ProcessOptions): Promise<Process> {
  const { name, command, args, directory, environment } = options;
  const log = openSync(join(directory, 'logs', `${name}.log`), 'a');
  // Own process group: on Ctrl-C in a terminal, `stop` must decide the order in which components end.
  const child = spawn(command, args, {
    cwd: directory,
    env: { PATH, HOME: directory, ...COMPILED, ...environment },
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  const state = { ended: undefined as string | undefined };
  const ended = new Promise<void>((resolve) => {
    const end = (how: string): void => {
      state.ended ??= how;
      resolve();
    };
    child.once('error', (error) => end(`could not be started: ${error.message}`));
    child.once('exit', (code, signal) => end(`ended with ${signal ?? `exit code ${code}`}`));
  });
  const pidFile = join(directory, 'pids', name);
  const stop = async (): Promise<void> => {
    if (state.ended === undefined) await terminate(child, ended, options.clock);
    await rm(pidFile, { force: true });
  };
  // The guard reads this file and ends the process if the present process cannot do that.
  if (child.pid !== undefined) writeFileSync(pidFile, String(child.pid));
  try {
    await awaitReady(options, () => state.ended);
  } catch (error) {
    await stop();
    throw error;
  }
  return { pid: child.pid ?? 0, stop };
}

/** Stops all in parallel; resolves when the last one has ended. */
export async function stopAll(processes: readonly Process[]): Promise<void> {
  await Promise.all(processes.map(async (process) => await process.stop()));
}

async function awaitReady(
  { name, directory, ready, clock, abort }: ProcessOptions,
  ended: () => string | undefined,
) {
  const deadline = clock.monotonic() + READY_MS;
  while (!(await ready())) {
    const how =
      ended() ??
      (clock.monotonic() > deadline ? `was not ready after ${READY_MS / 1000} s` : undefined);
    if (how !== undefined) {
      const text = await readFile(join(directory, 'logs', `${name}.log`), 'utf8');
      throw new RefitError('REFIT_TESTENV', `${name} ${how}: ${lastLines(text)}`);
    }
    await sleep(clock, POLL_MS, abort);
  }
}

async function terminate(child: ChildProcess, ended: Promise<void>, clock: Clock): Promise<void> {
  child.kill('SIGTERM');
  const cancel = clock.schedule(STOP_MS, () => child.kill('SIGKILL'));
  await ended;
  cancel();
}
