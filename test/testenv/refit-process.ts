/** Runs `refit` as users do: a process with two outputs, signals and an exit code. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { REFIT } from '../../sandbox/refit.ts';

export class RefitProcess implements AsyncDisposable {
  /** Lines so far. */
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

  /** As `head` does after enough lines. */
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
export async function runRefit(...args: readonly string[]): Promise<RefitResult> {
  await using refit = new RefitProcess(...args);
  const code = await refit.ended;
  return { code, stdout: refit.stdout, stderr: refit.stderr };
}
