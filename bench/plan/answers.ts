/** Watches one server from outside, and finds the longest time without an answer. */
import { Agent, request } from 'node:https';
import { type Clock, sleep } from '../../src/util/clock.ts';

const ASK_EVERY_MS = 50;
const ANSWER_TIMEOUT_MS = 1_000;

export interface Answers {
  /** Returns the most milliseconds between two consecutive answers; NaN before the second answer. */
  longestGap(): number;
  /** Returns the number of answers so far. */
  count(): number;
}

/** Calls `ask` again and again until `abort` aborts. `ask` must reject if the server does not answer. */
export function watchAnswers(
  ask: () => Promise<unknown>,
  clock: Clock,
  abort: AbortSignal,
): Answers {
  let last = Number.NaN;
  let longest = Number.NaN;
  let count = 0;
  const follow = async (): Promise<void> => {
    while (!abort.aborted) {
      const answered = await ask().then(
        () => true,
        () => false,
      );
      const now = clock.monotonic();
      if (answered) {
        if (count++ > 0) longest = Math.max(now - last, longest || 0);
        last = now;
      }
      await sleep(clock, ASK_EVERY_MS, abort).catch(() => undefined);
    }
  };
  void follow();
  return { longestGap: () => longest, count: () => count };
}

/**
 * Returns a function that asks over a new connection each time, and resumes the TLS session of the previous connection.
 * Full handshakes would take a fifth of a core.
 */
export function askReadyz(server: { host: string; port: number; ca: string | undefined }) {
  const agent = new Agent({ keepAlive: false });
  return async (abort: AbortSignal): Promise<void> =>
    await new Promise((resolve, reject) => {
      const signal = AbortSignal.any([abort, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
      request({ ...server, path: '/readyz', agent, signal }, (answer) =>
        answer.once('end', resolve).resume(),
      )
        .once('error', reject)
        .end();
    });
}
