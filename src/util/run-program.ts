/** Runs a program whose output and time are limited. */
import { type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { formatDuration } from './duration.ts';
import { RefitError } from './errors.ts';
import { onAbort } from './waits.ts';

/** How a program ended, and what it wrote. */
export interface ShellResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The exit code of a program that Refit ended. ssh uses the same code for its own errors. */
export const BROKEN = 255;
/**
 * The most characters of each output. An attacker may control a host, and its output must not fill
 * our memory.
 */
const MOST_CHARACTERS = 1024 * 1024;
/**
 * Milliseconds after which Refit ends a program, so that no host blocks Refit for ever. The limit is long, because one
 * step may wait half an hour for another step.
 */
const PATIENCE_MS = 2 * 3_600_000;

export interface ProgramOptions {
  readonly input?: string;
  readonly patienceMs?: number | undefined;
  readonly abort?: AbortSignal;
  /** The user and the environment of the program, if they differ from those of this process. */
  readonly as?: Pick<SpawnOptions, 'uid' | 'gid' | 'env'>;
}

/**
 * Resolves when the program has exited. After the time limit, an abort or too much output it ends
 * the program, and the result has the code BROKEN. It rejects with REFIT_SSH if the program cannot
 * be started.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: ProgramOptions,
) {
  const { input = '', patienceMs = PATIENCE_MS, abort, as } = options;
  using watch = new DisposableStack();
  return await new Promise<ShellResult>((resolve, reject) => {
    const child = spawn(program, args, { ...as, stdio: 'pipe' });
    const text = { stdout: '', stderr: '' };
    let broken: string | undefined;
    const giveUp = (why: string): void => {
      broken ??= why;
      child.kill('SIGKILL');
      child.stdout.destroy();
    };
    const late = setTimeout(
      giveUp,
      patienceMs,
      `the script did not end within ${formatDuration(patienceMs)}`,
    ).unref();
    if (abort) watch.use(onAbort(abort, () => giveUp('the wait for the script was cancelled')));
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (chunk: string) => {
        if (text[name].length < MOST_CHARACTERS) text[name] += chunk;
        else giveUp('the script printed more than 1 MiB');
      });
    child.once('error', (error) =>
      reject(
        new RefitError('REFIT_SSH', `cannot start ${program} on this machine: ${error.message}`),
      ),
    );
    // A shared connection of ssh keeps standard error open, so the event `close` of the process would be too late.
    const ended = [once(child, 'exit'), once(child.stdout, 'close')];
    const settled = (): void => {
      clearTimeout(late);
      if (broken === undefined) resolve({ code: child.exitCode ?? BROKEN, ...text });
      else resolve({ code: BROKEN, stdout: '', stderr: broken });
    };
    Promise.all(ended).then(() => setImmediate(() => setImmediate(settled)), reject);
    // The program may exit before it has read its input. The exit code then says why, so the error of the write is
    // ignored.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}
