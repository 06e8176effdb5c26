/** Limits how often tokens that the API server refuses are tried, so that nobody can keep the API server busy with them. */
import { type Clock, createTokenBucket } from '../../util/clock.ts';

interface Limit {
  readonly perSecond: number;
  readonly burst: number;
}

/** Each address may fail ten times, and then once every six seconds. Behind a proxy, this holds for each token. */
const EACH: Limit = { perSecond: 1 / 6, burst: 10 };
/** All tokens from one proxy together may fail this often. Many viewers may come back at once with tokens that have expired. */
const PROXY: Limit = { perSecond: 5, burst: 200 };
/** The most senders that are known at once. The one that failed longest ago is forgotten. */
const MOST_SENDERS = 1024;

interface Tries {
  readonly take: () => number;
  /** Monotonic time from which on the sender may try again. */
  freeAt: number;
}

/** The origin of a token. */
export interface Sender {
  readonly address: string;
  /** An identifier of the token if a trusted proxy has sent it, because all viewers behind a proxy have the same address. */
  readonly proxied?: string | undefined;
}

export interface Failures {
  /** Returns the seconds that the sender has to wait; 0 if it may try a token now. */
  waitOf(sender: Sender): number;
  /** Records that a token from this sender was refused. */
  note(sender: Sender): void;
}

/**
 * Behind a proxy each token counts for itself, because a token that has expired must not lock out other viewers. All tokens of the proxy
 * together have a wide limit, too: a client of the proxy may invent a new token for each request.
 */
export function createFailures(clock: Clock): Failures {
  const addresses = createCounts(clock, EACH);
  const tokens = createCounts(clock, EACH);
  const proxies = createCounts(clock, PROXY);
  return {
    waitOf: ({ address, proxied }) =>
      proxied === undefined
        ? addresses.waitOf(address)
        : Math.max(tokens.waitOf(proxied), proxies.waitOf(address)),
    note({ address, proxied }) {
      if (proxied === undefined) return addresses.note(address);
      tokens.note(proxied);
      proxies.note(address);
    },
  };
}

interface Counts {
  waitOf(key: string): number;
  note(key: string): void;
}

function createCounts(clock: Clock, limit: Limit): Counts {
  const known = new Map<string, Tries>();
  return {
    waitOf(key) {
      const { freeAt = 0 } = known.get(key) ?? {};
      return Math.max(0, Math.ceil((freeAt - clock.monotonic()) / 1000));
    },
    note(key) {
      const tries = known.get(key) ?? { take: createTokenBucket(clock, limit), freeAt: 0 };
      tries.freeAt = clock.monotonic() + tries.take();
      // The newest key is the last one of the map.
      known.delete(key);
      known.set(key, tries);
      const [oldest] = known.keys();
      if (known.size > MOST_SENDERS && oldest !== undefined) known.delete(oldest);
    },
  };
}
