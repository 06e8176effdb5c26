/** Runs `refit kubeadm apply`, and disturbs it at a certain line of its progress. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Operator } from '../operator.ts';

export interface Ended {
  /** The exit code; undefined if a signal ended the command. */
  readonly code: number | undefined;
  /** True if the line was printed. */
  readonly reached: boolean;
  readonly output: string;
}

/**
 * Runs `apply`, and calls `at` once when a line of its output matches `line`. `kill` ends Refit with SIGKILL, so that
 * Refit cannot clean up.
 */
export async function applyUntil(
  operator: Operator,
  line: RegExp,
  at: (kill: () => void) => void | Promise<void>,
): Promise<Ended> {
  const [command, args] = operator.command('apply', '--yes');
  const child = spawn(command, args, {
    env: { ...process.env, ...operator.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let happening: Promise<void> | undefined;
  const read = (chunk: Buffer): void => {
    output += String(chunk);
    if (happening === undefined && line.test(output))
      happening = Promise.resolve(at(() => void child.kill('SIGKILL')));
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  const [code] = (await once(child, 'close')) as [number | null];
  await happening;
  await operator.keep(['apply'], output);
  return { code: code ?? undefined, reached: happening !== undefined, output };
}
