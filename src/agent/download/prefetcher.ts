/**
 * Downloads a version before its node is upgraded. It verifies the binary and runs it once, while the service keeps
 * running.
 */
import type { Prefetch } from '../../signal/prefetch.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { type FetchAhead, fetchAhead, type PrefetcherParts } from './fetch-ahead.ts';

export interface Prefetcher extends Pick<FetchAhead, 'holds'> {
  /**
   * Starts the download that is requested now, and discards a download that is no longer requested. Returns without
   * waiting for these operations.
   */
  follow(asked: Prefetch | undefined): void;
  /** Resolves once the prefetcher has stopped writing. The files stay, so that the upgrade can continue with them. */
  stop(): Promise<void>;
}

/** Use the prefetcher only while the journal is idle, because it writes to the same paths as the upgrade. */
export function createPrefetcher(parts: PrefetcherParts): Prefetcher {
  const { fetch, discard, holds } = fetchAhead(parts);
  /** The last request that `follow` got; undefined before the first call. */
  let wished: Prefetch | 'nothing' | undefined;
  let ending = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const stop = async (): Promise<void> => {
    // After this reset, `follow` starts a download again even for the same request.
    wished = undefined;
    ending.abort(new Error('the download is no longer requested'));
    await running;
  };
  return {
    stop,
    holds,
    follow(asked) {
      const wish = asked ?? 'nothing';
      if (sameJson(wish, wished)) return;
      const before = stop();
      wished = wish;
      ending = new AbortController();
      const { signal } = ending;
      running = before
        .then(async () => await (wish === 'nothing' ? discard(signal) : fetch(wish, signal)))
        .catch((error: unknown) => {
          if (!signal.aborted) parts.log.warn('cannot fetch ahead', { reason: messageOf(error) });
        });
    },
  };
}
