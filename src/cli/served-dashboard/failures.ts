/**
 * Limits how often clients may try tokens that the API server refuses, so that they cannot overload the API server with
 * such tokens.
 */
import { type Clock, createTokenBucket } from '../../util/clock.ts';

interface Limit {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * The limit for refused tokens of one address, or of one token behind a proxy: first ten in a row, and then one every
 * six seconds.
 */
const EACH: Limit = { perSecond: 1 / 6, burst: 10 };
/**
 * The limit for all refused tokens from one proxy. It is high, because many viewers may return at the same time with
 * expired tokens.
 */
const PROXY: Limit = { perSecond: 5, burst: 200 };
/**
 * The maximum number of senders whose failures are counted at the same time. If there are more, the sender whose last
 * failure is the oldest is removed.
 */
const MOST_SENDERS = 1024;

interface Tries {
  readonly take: () => number;
  /** The monotonic time in milliseconds after which the sender may try again. */
  freeAt: number;
}

/** The origin of a token. */
export interface Sender {
  readonly address: string;
  /**
   * An identifier of the token; set only if a trusted proxy sent the token. It is needed because all viewers behind a
   * proxy have the same address.
   */
  readonly proxied?: string | undefined;
}

export interface Failures {
  /** Returns the seconds that the sender has to wait; 0 if it may try a token now. */
  waitOf(sender: Sender): number;
  /** Records that a token from this sender was refused. */
  note(sender: Sender): void;
}

/**
 * Returns the counters of refused tokens. Each token behind a proxy has its own limit, because an expired token must
 * not lock out other viewers. All tokens of a proxy together also have a limit, which is high. It is needed because a
 * client of the proxy may invent a new token for each request.
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
      // The key is deleted and set again, so that the keys of the map are in the order of their last failure.
      known.delete(key);
      known.set(key, tries);
      const [oldest] = known.keys();
      if (known.size > MOST_SENDERS && oldest !== undefined) known.delete(oldest);
    },
  };
}
