/** Runs a real agent for a stand-in host, in a separate process that a test can kill. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface AgentProcess {
  readonly pid: number;
  /** The lines that the process wrote to standard error. */
  readonly log: readonly string[];
  /** The exit code; null if a signal ended the process. */
  readonly exited: Promise<number | null>;
  /** Sends the signal and waits for the end of the process. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

/**
 * Starts `refit agent` in a process. The first argument is the command that starts `refit`, `args` are the arguments
 * after `agent`, and `environment` is added to the environment of this process.
 */
export function startAgentProcess(
  [command, ...before]: readonly [string, ...string[]],
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): AgentProcess {
  const env = { ...process.env, ...environment };
  const child = spawn(command, [...before, 'agent', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env,
  });
  const log: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line));
  const exited = once(child, 'close').then(([code]) => code as number | null);
  return {
    pid: child.pid ?? 0,
    log,
    exited,
    async stop(signal) {
      child.kill(signal);
      return await exited;
    },
  };
}
