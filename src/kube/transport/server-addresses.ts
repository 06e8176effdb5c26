/**
 * Keeps the addresses of a cluster's API servers: the configured one first, then those that were
 * learned.
 */
import type { Clock } from '../../util/clock.ts';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Milliseconds for which an address that failed comes last. An API server needs about that long to
 * restart.
 */
const AVOID_MS = 10_000;
/** The most learned addresses, more than any control plane has. */
const MOST = 16;

export type ServerAddresses = ReturnType<typeof serverAddresses>;

export function serverAddresses(own: ServerAddress, clock: Clock) {
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
    /**
     * Returns the first address that did not fail recently, or the one whose failure is the oldest.
     */
    next(): ServerAddress {
      const before = clock.monotonic() - AVOID_MS;
      const good = all.find((address) => failedAt(address) < before);
      return good ?? longestAgo();
    },
    failed: (address: ServerAddress) => void failures.set(keyOf(address), clock.monotonic()),
    /**
     * Replaces the learned addresses. Addresses that are missing in `peers` are kept behind the
     * others, because an API server that restarts is missing for a while.
     */
    learn(peers: readonly ServerAddress[]): void {
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
