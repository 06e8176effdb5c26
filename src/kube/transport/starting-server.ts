/**
 * Finds out whether an API server refuses a request only because it has just started. Until it has read the roles of the
 * cluster, it answers every request with the code 403, in the same words as for a missing right.
 */
import { type Clock, sleep } from '../../util/clock.ts';
import { isSuccess } from '../../util/http-status.ts';
import type { TimeLimit } from './time-limit.ts';

/** What a starting API server can be asked. */
export interface ReadinessQuestion {
  readonly clock: Clock;
  /** Resolves with the code with which the server answers this path; 0 if no answer comes. */
  readonly ask: (path: string, limit: TimeLimit) => Promise<number>;
}

/**
 * What a refusal means. `counts`: the server has been ready, or has refused everything for a while. `repeat`: the server
 * has just become ready, so the request may be sent again. `starting`: the server is not ready.
 */
export type RefusalVerdict = 'counts' | 'repeat' | 'starting';

/** After the server was ready, its refusals count for this many milliseconds, unless a connection breaks meanwhile. */
const PROVEN_MS = 60_000;
/** How many milliseconds the server is asked again. A server that is not ready after this time is told as starting. */
const LONGEST_WAIT_MS = 5_000;
/**
 * How many milliseconds a server is asked again that refuses everything, even what every user may ask. A server on a busy
 * machine needs longer than a few seconds to read the roles. Afterwards its refusal counts, because the user may have no
 * right at all.
 */
const LONGEST_REFUSAL_MS = 20_000;
/**
 * A server may hide /readyz from this user. Each user who is known may ask for this path by default, so a server that
 * answers it has read the roles.
 */
const DISCOVERY = '/api';
const PAUSE_MS = 200;

export interface StartingServer {
  /** Resolves with what a refusal of the server means. Rejects if the limit of the call is over. */
  readonly judge: (limit: TimeLimit) => Promise<RefusalVerdict>;
  /** Forgets that the server was ready, because a connection broke or the server failed. */
  readonly forget: () => void;
}

export function startingServer({ clock, ask }: ReadinessQuestion): StartingServer {
  let provenUntil = Number.NEGATIVE_INFINITY;
  return {
    async judge(limit) {
      if (clock.monotonic() < provenUntil) return 'counts';
      const begin = clock.monotonic();
      for (;;) {
        const code = await ask('/readyz', limit);
        const isHidden = code >= 400 && code < 500;
        const isReady = isSuccess(code) || (isHidden && isSuccess(await ask(DISCOVERY, limit)));
        const end = begin + (isHidden ? LONGEST_REFUSAL_MS : LONGEST_WAIT_MS);
        const isLate = clock.monotonic() + PAUSE_MS >= end || limit.remaining <= PAUSE_MS;
        if (isReady || (isLate && isHidden)) provenUntil = clock.monotonic() + PROVEN_MS;
        if (isReady) return 'repeat';
        if (isLate) return isHidden ? 'counts' : 'starting';
        await sleep(clock, PAUSE_MS, limit.abort);
      }
    },
    forget() {
      provenUntil = Number.NEGATIVE_INFINITY;
    },
  };
}
