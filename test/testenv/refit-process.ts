/**
 * Runs `refit` as users do: as a process with two outputs, signals and an exit code. Runs short commands within this
 * process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { REFIT } from '../../sandbox/refit.ts';
import { printableText } from '../../src/cli/output.ts';

export class RefitProcess implements AsyncDisposable {
  /** The lines that the process has printed so far. */
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  /** Exit code, or null if a signal ended it. */
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;

  /** Starts immediately, with a pipe for each output. */
  constructor(...args: readonly string[]) {
    const child = spawn(process.execPath, [REFIT, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    createInterface({ input: child.stdout }).on('line', (line) => this.stdout.push(line));
    createInterface({ input: child.stderr }).on('line', (line) => this.stderr.push(line));
    this.ended = once(child, 'close').then(([code]) => code as number | null);
    this.#child = child;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Closes the standard output, as `head` does after enough lines. */
  closeOutput(): void {
    this.#child.stdout?.destroy();
  }

  async stop(signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    this.#child.kill(signal);
    return await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL');
  }
}

export interface RefitResult {
  readonly code: number | null;
  readonly stdout: readonly string[];
  readonly stderr: readonly string[];
}

/** Runs one command to its end. */
export async function runRefitProcess(...args: readonly string[]): Promise<RefitResult> {
  await using refit = new RefitProcess(...args);
  const code = await refit.ended;
  return { code, stdout: refit.stdout, stderr: refit.stderr };
}

/**
 * Does the same as `runRefitProcess` without a new process, which saves most of the CPU time. Use it for commands that
 * end by themselves, take no input, and write nothing except what they print. `cli.test.ts` tests the behaviour that
 * only a process has.
 */
export async function runRefit(...args: readonly string[]): Promise<RefitResult> {
  const [{ runProgram }, { COMMANDS }, { describeProblem }] = await Promise.all([
    import('../../src/cli/program.ts'),
    import('../support/commands.ts'),
    import('../../src/kube/status-error.ts'),
  ]);
  let printed = '';
  const write = (text: string): void => {
    printed += printableText(text);
  };
  const size = () => ({ columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY });
  const output = { isTerminal: false, hasColours: false, size, write };
  const { signal: abort } = new AbortController();
  const result = (code: number, stderr: string) => ({
    code,
    stdout: linesOf(printed),
    stderr: linesOf(stderr),
  });
  return await runProgram(args, COMMANDS, { abort, write, output }).then(
    (code) => result(code, ''),
    (thrown: unknown) => {
      const { exitCode, line } = describeProblem(thrown);
      return result(exitCode, line);
    },
  );
}

function linesOf(text: string): string[] {
  const lines = text.split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}
