/** Lists the EvictionRequests and Evictions of all nodes once for all drains of this process. */
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../util/clock.ts';
import { untilAborted } from '../util/waits.ts';
import {
  type EvictionRequest,
  evictionRequests,
  REQUESTER,
  type RequestedEviction,
  requestedEvictions,
} from './eviction-request-objects.ts';

/** The number of milliseconds between two lists of the requests. The pods themselves are watched. */
export const LOOK_MS = 5_000;

export interface SeenRequests {
  /**
   * The time at which the lists were requested, in monotonic milliseconds. The lists may lack an EvictionRequest that
   * was created after this time.
   */
  readonly begunAt: number;
  readonly requests: readonly EvictionRequest[];
  /** The Evictions, or the error of the request that lists them. */
  readonly evictions: readonly RequestedEviction[] | { readonly error: unknown };
}

/** Rejects if the requests cannot be listed, or if `abort` aborts. */
export type LookAtRequests = (abort: AbortSignal) => Promise<SeenRequests>;

/** Returns a function that lists at most once in LOOK_MS, however many drains call it. After a failure, the next call lists again. */
export function sharedLook(client: KubeClient, clock: Clock): LookAtRequests {
  let latest: { readonly begunAt: number; readonly look: Promise<SeenRequests> } | undefined;
  const list = async (begunAt: number): Promise<SeenRequests> => {
    const selection = { labelSelector: REQUESTER };
    const [requests, evictions] = await Promise.all([
      client.listAll(evictionRequests, selection),
      client.listAll(requestedEvictions, selection).catch((error: unknown) => ({ error })),
    ]);
    const found = 'error' in evictions ? evictions : evictions.items;
    return { begunAt, requests: requests.items, evictions: found };
  };
  return async (abort) => {
    const begunAt = clock.monotonic();
    if (latest === undefined || begunAt - latest.begunAt >= LOOK_MS) {
      const fresh = { begunAt, look: list(begunAt) };
      latest = fresh;
      fresh.look.catch(() => {
        if (latest === fresh) latest = undefined;
      });
    }
    return await untilAborted(latest.look, abort);
  };
}
