/** Runs a command to its end and returns its output. */
import { spawn } from 'node:child_process';

export interface RunOptions {
  readonly cwd?: string;
  /** Added to this process's environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Written to standard input. Default: empty. */
  readonly input?: string;
  readonly abort?: AbortSignal | undefined;
}

export interface RunResult {
  readonly ok: boolean;
  readonly stdout: string;
  /** Standard error, or why the command could not be started. */
  readonly stderr: string;
}

/** Rejects only when `abort` aborts. A missing or failing command gives `ok: false`. */
export type Run = (
  command: string,
  args: readonly string[],
  options?: RunOptions,
) => Promise<RunResult>;

export const run: Run = async (command, args, { cwd, environment, input = '', abort } = {}) => {
  const result = await new Promise<RunResult>((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...environment },
      signal: abort,
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', (error) => stderr.push(Buffer.from(error.message)));
    child.on('close', (code) =>
      resolve({
        ok: code === 0,
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      }),
    );
    // A command may end before it has read its input; its exit code says why.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
  abort?.throwIfAborted();
  return result;
};

/** The last lines of a command's output, for error messages. */
export function lastLines(text: string): string {
  return text.trim().split('\n').slice(-5).join('\n');
}
