/** Chooses the faults of the network and the server at random, from a seed, and counts them. */
import type { ApiFault, ApiFaultsOptions } from './api-faults.ts';
import type { ChunkFault } from './tcp-proxy.ts';

type RequestFault = ApiFaultsOptions['fault'];

export interface FaultDice {
  /** Returns the fault for the next chunk from the server; undefined for no fault. */
  chunk(): ChunkFault | undefined;
  request: RequestFault;
  /** How often each fault happened, by its name. */
  readonly counts: ReadonlyMap<string, number>;
  /** Stops all faults from now on. */
  calm(): void;
}

/**
 * The query parameter that identifies the requests of the second informer. For this informer the server refuses
 * streamed lists.
 */
export const WITHOUT_STREAMED_LISTS = 'labelSelector';

/** The probability of each fault of the network, per chunk. */
const CHUNKS: readonly [number, () => ChunkFault][] = [
  [0.004, () => ({ kind: 'reset' })],
  [0.004, () => ({ kind: 'truncate' })],
  [0.004, () => ({ kind: 'close' })],
  [0.001, () => ({ kind: 'stall' })],
  [0.03, () => ({ kind: 'split', ms: 2 })],
  [0.01, () => ({ kind: 'delay', ms: 3 })],
];

const answer = (code: number, reason: string, retryAfterSeconds?: number): (() => ApiFault) => {
  const more = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return () => ({ kind: 'answer', code, reason, ...more });
};

const EVERY_REQUEST: readonly [number, () => ApiFault][] = [
  [0.04, answer(500, 'InternalError')],
  [0.04, answer(429, 'TooManyRequests', 1)],
  [0.02, answer(503, 'ServiceUnavailable')],
  [0.04, () => ({ kind: 'last-answer' })],
];

const WRITES: readonly [number, () => ApiFault][] = [
  [0.04, answer(409, 'Conflict')],
  [0.04, () => ({ kind: 'applied-but-lost' })],
];

const errorEvent = (code: number, reason: string, events: number): (() => ApiFault) => {
  return () => ({ kind: 'error-event', code, reason, events });
};

const WATCHES: readonly [number, () => ApiFault][] = [
  [0.05, answer(410, 'Gone')],
  [0.05, answer(400, 'Expired')],
  [0.1, errorEvent(410, 'Gone', 40)],
  [0.1, errorEvent(0, 'Expired', 25)],
  [0.05, errorEvent(500, 'InternalError', 10)],
];

export function throwFaultDice(random: () => number): FaultDice {
  const counts = new Map<string, number>();
  let calm = false;
  const roll = <T extends ChunkFault | ApiFault>(
    faults: readonly [number, () => T][],
  ): T | undefined => {
    let chance = calm ? 1 : random();
    const drawn = faults.find(([share]) => {
      chance -= share;
      return chance < 0;
    });
    const thrown = drawn?.[1]();
    if (!thrown) return undefined;
    // A busy machine makes few requests. So a fault that has not happened yet is chosen first.
    const hit =
      faults.map(([, fault]) => fault()).find((fault) => !counts.has(nameOf(fault))) ?? thrown;
    count(counts, nameOf(hit));
    return hit;
  };
  return {
    counts,
    chunk: () => roll(CHUNKS),
    request: ({ method, url }) => {
      const query = url.searchParams;
      if (query.has('sendInitialEvents') && query.has(WITHOUT_STREAMED_LISTS))
        return answer(422, 'Invalid')();
      if (method !== 'GET') return roll([...EVERY_REQUEST, ...WRITES]);
      return roll(query.has('watch') ? [...EVERY_REQUEST, ...WATCHES] : EVERY_REQUEST);
    },
    calm: () => {
      calm = true;
    },
  };
}

function nameOf(fault: ChunkFault | ApiFault): string {
  return 'code' in fault ? `${fault.kind} ${fault.code} ${fault.reason}` : fault.kind;
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

/** Every fault that the dice know, by its name. */
export const ALL_FAULTS: readonly string[] = [
  ...CHUNKS,
  ...EVERY_REQUEST,
  ...WRITES,
  ...WATCHES,
].map(([, fault]) => nameOf(fault()));
