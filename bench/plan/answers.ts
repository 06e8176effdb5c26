/** Watches one server from outside, and finds the longest time in which it gave no answer. */
import { Agent, request } from 'node:https';
import { type Clock, sleep } from '../../src/util/clock.ts';

const ASK_EVERY_MS = 50;
const ANSWER_TIMEOUT_MS = 1_000;

export interface Answers {
  /** Milliseconds between two answers in a row, at most; NaN before the second one. */
  longestGap(): number;
  /** Answers so far. */
  count(): number;
}

/** `ask` rejects when no answer comes; it is called until `abort`. */
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

/** Over a new connection each time, with the TLS session of the one before: full handshakes would take a fifth of a core. */
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
