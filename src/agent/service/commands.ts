/** Owns running the commands of service managers: bounded in time, and never ended together with the agent. */
import { spawn } from 'node:child_process';
import { type Clock, sleep } from '../../util/clock.ts';

export interface Commands {
  /** What it printed; rejects with what it complained of, or after ten seconds. */
  ask(command: string, ...args: readonly string[]): Promise<string>;
  /**
   * Resolves once it ended well, or has worked for five seconds, and leaves it at work then: half of a restart is worse
   * than a slow one. Rejects with what it complained of.
   */
  order(command: string, ...args: readonly string[]): Promise<void>;
}

const ASK_MS = 10_000;
const ORDER_MS = 5_000;
const MOST_CHARACTERS = 4_000_000;

/** `env` is what the commands are found and run with. */
export function createCommands(env: NodeJS.ProcessEnv, clock: Clock): Commands {
  return {
    async ask(command, ...args) {
      const running = start(command, args, env);
      const cancel = clock.schedule(ASK_MS, () => running.kill(`did not end within ${ASK_MS / 1000} s`));
      return await running.ended.finally(cancel);
    },
    async order(command, ...args) {
      const running = start(command, args, env);
      const patience = new AbortController();
      const enough = sleep(clock, ORDER_MS, patience.signal).catch(() => undefined);
      await Promise.race([running.ended, enough]).finally(() => patience.abort());
      // What it complains of after that is for nobody: the service shows what came of it.
      running.ended.catch(() => undefined);
      running.release();
    },
  };
}

interface Running {
  /** What it printed; rejects where it did not end with 0. */
  readonly ended: Promise<string>;
  kill(why: string): void;
  /** Keeps this process alive no longer. */
  release(): void;
}

/** In a session of its own, so that no signal to the agent's reaches it. */
function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Running {
  const child = spawn(command, args, {
    env: { ...env, LC_ALL: 'C' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr, killed] = ['', '', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout = (stdout + text).slice(0, MOST_CHARACTERS)));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(0, MOST_CHARACTERS)));
  const ended = new Promise<string>((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`${[command, ...args].join(' ')} ${why}`));
    child.once('error', (error) => fail(error.message));
    // Not `close`: what a daemon inherited of the pipes stays open for as long as the daemon lives.
    child.once('exit', (code) => {
      if (code === 0) resolve(stdout);
      else fail(killed || `ended with code ${code}: ${lastLine(stderr) || lastLine(stdout)}`);
    });
  });
  return {
    ended,
    kill(why) {
      killed = why;
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
