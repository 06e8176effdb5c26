/** Runs the commands of service managers, with time limits. A command keeps running if the agent ends. */
import { spawn } from 'node:child_process';
import { type Clock, sleep } from '../../util/clock.ts';

/** Runs commands of the host. The first argument is the program. */
export interface Commands {
  /**
   * Returns the output. Rejects if the command fails. If the command has not exited after ten seconds, it is killed,
   * and the promise rejects.
   */
  readonly ask: (command: string, ...args: readonly string[]) => Promise<string>;
  /**
   * Resolves once the command has exited with 0, or after five seconds. The command keeps running after that time,
   * because a slow restart is better than an interrupted restart. Rejects if the command fails within that time.
   */
  readonly start: (command: string, ...args: readonly string[]) => Promise<void>;
}

const ASK_MS = 10_000;
const ORDER_MS = 5_000;
/** Milliseconds after the exit of a command in which its last output may still arrive. */
const CLOSE_MS = 500;
const MOST_CHARACTERS = 4_000_000;

/** Returns functions that run commands with the environment `env`, PATH included. */
export function createCommands(env: NodeJS.ProcessEnv, clock: Clock): Commands {
  return {
    ask: async (command, ...args) => {
      const running = spawnCommand(command, args, env, clock);
      const cancel = clock.schedule(ASK_MS, () =>
        running.kill(`did not end within ${ASK_MS / 1000} s`),
      );
      return await running.ended.finally(cancel);
    },
    async start(command, ...args) {
      const running = spawnCommand(command, args, env, clock);
      const patience = new AbortController();
      const enough = sleep(clock, ORDER_MS, patience.signal).catch(() => undefined);
      await Promise.race([running.ended, enough]).finally(() => patience.abort());
      // An error of the command after these five seconds is ignored, because the state of the service shows whether the restart worked.
      running.ended.catch(() => undefined);
      running.release();
    },
  };
}

interface RunningCommand {
  /** Resolves with the output. Rejects unless the command exits with 0. */
  readonly ended: Promise<string>;
  /** Kills the command. The reason becomes part of the error. */
  readonly kill: (why: string) => void;
  /** Lets this process exit before the command does. */
  readonly release: () => void;
}

/** Starts the command in a session of its own, so that a signal to the agent's session does not reach it. */
function spawnCommand(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  clock: Clock,
): RunningCommand {
  const child = spawn(command, args, {
    env: { ...env, LC_ALL: 'C' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  let killReason = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout = (stdout + text).slice(0, MOST_CHARACTERS);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, MOST_CHARACTERS);
  });
  const ended = new Promise<string>((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`${[command, ...args].join(' ')} ${why}`));
    child.once('error', (error) => fail(error.message));
    const end = (code: number | null): void => {
      if (code === 0) resolve(stdout);
      else fail(killReason || `ended with code ${code}: ${lastLine(stderr) || lastLine(stdout)}`);
    };
    child.once('exit', (code) => {
      // A daemon that the command started may keep the pipes open for ever, so the end of the output has a time limit.
      const cancel = clock.schedule(CLOSE_MS, () => end(code));
      child.once('close', () => {
        cancel();
        end(code);
      });
    });
  });
  return {
    ended,
    kill(why) {
      killReason = why;
      child.kill('SIGKILL');
    },
    release() {
      child.unref();
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
    },
  };
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.trim().slice(0, 200) ?? '';
}
