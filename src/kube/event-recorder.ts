/** Writes Events on objects. A repeated Event increases the count of the existing Event. */
import { createTokenBucket, rfc3339, sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { sparingly } from '../util/log.ts';
import { DEFAULT_TOOLS, type Tools } from '../util/tools.ts';
import { aborted } from '../util/waits.ts';
import type { KubeClient } from './client.ts';
import { type EventNote, knownSeries, type Series, sendSeries } from './event-series.ts';
import type { KubeObject } from './resources.ts';
import { isAlreadyExists, isNotFound, isVerdict, TransportError } from './status-error.ts';

export interface EventRecorderOptions extends Partial<Tools> {
  readonly client: KubeClient;
  /** The component that reports the Events, such as `refit-controller`. */
  readonly component: string;
}

/**
 * The most writes per second, and the most writes in one burst. These numbers suffice for a large rollout, and are little load for an API
 * server.
 */
const RATE = { perSecond: 10, burst: 100 };
const MAX_ATTEMPTS = 3;
const RETRY_MS = 1_000;
/**
 * The most Events that wait to be written. The number allows a few Events for each node of a large cluster. More Events would wait only if
 * the server cannot be reached.
 */
const MAX_UNWRITTEN = 5_000;
/** Milliseconds at the end of the process in which waiting Events are still written. */
const LAST_MS = 5_000;

export interface EventRecorder {
  /** The name of this part of the process, for logs. */
  readonly name: string;
  /** Queues an Event. It returns at once and never throws. An Event that cannot be written is logged and dropped. */
  record(object: KubeObject, note: EventNote): void;
  /** Resolves when no Event waits to be written. */
  flush(): Promise<void>;
  /** Writes Events until `abort`, and resolves some seconds later at the latest. Events that are not written by then are dropped. */
  run(abort: AbortSignal): Promise<void>;
}

/**
 * Returns a recorder, which is a part of a process. Stop it after every part that records Events.
 */
export function eventRecorder({
  client,
  component,
  ...given
}: EventRecorderOptions): EventRecorder {
  const { clock, random, log } = { ...DEFAULT_TOOLS, ...given };
  const takeToken = createTokenBucket(clock, RATE);
  const shouldLog = sparingly(clock);
  const known = knownSeries({ component, random });
  const unwritten = new Set<Series>();
  const over = new AbortController();
  let writing: Promise<void> | undefined;
  const drop = (reason: string | undefined): void => log.warn('event dropped', { reason });
  const pause = async (ms: number): Promise<void> => {
    if (ms > 0) await sleep(clock, ms, over.signal).catch(() => undefined);
  };
  const write = async (series: Series): Promise<void> => {
    try {
      await sendSeries(series, client, over.signal);
      series.attempts = 0;
    } catch (error) {
      const problem = messageOf(error);
      // A server that does not answer may be restarting. The Event is kept in this case, and written when the server answers again.
      const isAway = error instanceof TransportError;
      if (!isAway || shouldLog(problem))
        log.warn('cannot write an event', { reason: series.event.reason, problem });
      // If the Event exists already, an earlier attempt has created it, and only the answer to that attempt was lost.
      if (isAlreadyExists(error)) series.created = true;
      else if (series.created && isNotFound(error)) series.created = false;
      else if (isVerdict(error)) return;
      else {
        if (!isAway) {
          series.attempts += 1;
          if (series.attempts >= MAX_ATTEMPTS) return;
        }
        await pause(RETRY_MS);
      }
      unwritten.add(series);
    }
  };
  const writeAll = async (): Promise<void> => {
    for (;;) {
      const [series] = unwritten;
      if (series === undefined) return;
      await pause(takeToken());
      unwritten.delete(series);
      if (over.signal.aborted) drop(series.event.reason);
      else await write(series);
    }
  };
  const flush = async (): Promise<void> => await writing;
  return {
    name: 'events',
    flush,
    record(object, note) {
      if (over.signal.aborted || unwritten.size >= MAX_UNWRITTEN) return drop(note.reason);
      const series = known.count(object, note, rfc3339(clock.now()));
      unwritten.add(series);
      writing ??= writeAll().finally(() => {
        writing = undefined;
      });
    },
    async run(abort) {
      await aborted(abort);
      const cancel = clock.schedule(LAST_MS, () =>
        over.abort(new Error('no time is left to write events')),
      );
      await flush();
      cancel();
      over.abort(new Error('the event recorder has stopped'));
    },
  };
}
