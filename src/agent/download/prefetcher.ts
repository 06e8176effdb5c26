/** Fetches a version before the node's turn: downloaded, verified and tried out, while the service runs on untouched. */
import type { Prefetch } from '../../signal/prefetch.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { type FetchAhead, fetchAhead, type PrefetcherParts } from './fetch-ahead.ts';

export interface Prefetcher extends Pick<FetchAhead, 'holds'> {
  /** Takes up a wish that is new, and discards what is not wished for any more. Does not wait. */
  follow(asked: Prefetch | undefined): void;
  /** Resolves once nothing is written any more. What is there stays, for the update to go on from. */
  stop(): Promise<void>;
}

/** Only to be used while the journal is idle: it shares the paths of the update. */
export function createPrefetcher(parts: PrefetcherParts): Prefetcher {
  const { fetch, discard, holds } = fetchAhead(parts);
  /** What was asked for last; undefined before anything was seen. */
  let wished: Prefetch | 'nothing' | undefined;
  let ending = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const stop = async (): Promise<void> => {
    // Whoever asks for the same again gets it.
    wished = undefined;
    ending.abort(new Error('no longer asked for'));
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
