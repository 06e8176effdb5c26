/** Running a real agent beside a stand-in host, as a process of its own that can be killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface AgentProcess {
  readonly pid: number;
  /** What it wrote to standard error, line by line. */
  readonly log: readonly string[];
  /** Exit code, or null where a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Sends the signal and waits for the end. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

/** `refit` is how to start the command, `args` what follows `refit agent`, `environment` what is added to ours. */
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
