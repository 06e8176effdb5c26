/** Keeps the addresses of a cluster's API servers: first the configured address, and then the learned addresses. */
import type { Clock } from '../../util/clock.ts';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * The time in milliseconds after a failure during which other addresses are preferred. An API server needs about this
 * time to restart.
 */
const AVOID_MS = 10_000;
/** The maximum number of learned addresses. No control plane has so many API servers. */
const MOST = 16;

export interface ServerAddresses {
  /** The number of known addresses. */
  readonly count: number;
  /**
   * Returns the first address that did not fail within AVOID_MS. If all addresses failed within this time, returns the
   * address with the oldest failure.
   */
  next(): ServerAddress;
  /** Records that no connection to the address was possible. */
  failed(address: ServerAddress): void;
  /**
   * Replaces the learned addresses. Addresses that are missing in `peers` are moved to the end of the list, and not
   * removed, because an API server that restarts is missing for a while.
   */
  learn(peers: readonly ServerAddress[]): void;
}

/** Returns a list that knows only the configured address `own`. */
export function serverAddresses(own: ServerAddress, clock: Clock): ServerAddresses {
  const failures = new Map<string, number>();
  let all: readonly ServerAddress[] = [own];
  const failedAt = (address: ServerAddress): number => failures.get(keyOf(address)) ?? -Infinity;
  const longestAgo = (): ServerAddress => {
    let oldest = own;
    for (const address of all) if (failedAt(address) < failedAt(oldest)) oldest = address;
    return oldest;
  };
  return {
    get count() {
      return all.length;
    },
    next() {
      const before = clock.monotonic() - AVOID_MS;
      const good = all.find((address) => failedAt(address) < before);
      return good ?? longestAgo();
    },
    failed: (address) => void failures.set(keyOf(address), clock.monotonic()),
    learn(peers) {
      const known = new Map([own, ...peers, ...all].map((address) => [keyOf(address), address]));
      all = [...known.values()].slice(0, 1 + MOST);
      const kept = new Set(all.map(keyOf));
      for (const key of failures.keys()) if (!kept.has(key)) failures.delete(key);
    },
  };
}

function keyOf({ host, port }: ServerAddress): string {
  return `${host} ${port}`;
}
