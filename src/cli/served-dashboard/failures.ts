/** Limits how often tokens that the API server refuses are tried, so that nobody can keep the API server busy with them. */
import { type Clock, createTokenBucket } from '../../util/clock.ts';

/** Each address may fail ten times, and then once every six seconds. */
const EACH = { perSecond: 1 / 6, burst: 10 };
/** The most addresses that are known at once. The one that failed longest ago is forgotten. */
const MOST_ADDRESSES = 1024;

interface Tries {
  readonly take: () => number;
  /** Monotonic time from which on the address may try again. */
  freeAt: number;
}

export interface Failures {
  /** Returns the seconds that the address has to wait; 0 if it may try a token now. */
  waitOf(address: string): number;
  /** Records that a token from this address was refused. */
  note(address: string): void;
}

export function createFailures(clock: Clock): Failures {
  const known = new Map<string, Tries>();
  return {
    waitOf(address) {
      const { freeAt = 0 } = known.get(address) ?? {};
      return Math.max(0, Math.ceil((freeAt - clock.monotonic()) / 1000));
    },
    note(address) {
      const tries = known.get(address) ?? { take: createTokenBucket(clock, EACH), freeAt: 0 };
      tries.freeAt = clock.monotonic() + tries.take();
      // The newest address is the last one of the map.
      known.delete(address);
      known.set(address, tries);
      const [oldest] = known.keys();
      if (known.size > MOST_ADDRESSES && oldest !== undefined) known.delete(oldest);
    },
  };
}
