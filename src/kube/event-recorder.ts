/** Writes Events on objects; a repeated Event counts up instead of becoming another object. */
import { createTokenBucket, rfc3339, sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { defined } from '../util/json.ts';
import { sparingly } from '../util/log.ts';
import { printable } from '../util/printable.ts';
import { DEFAULT_TOOLS, type Tools } from '../util/tools.ts';
import { aborted } from '../util/waits.ts';
import type { KubeClient } from './client.ts';
import { type Event, events, type KubeObject } from './resources.ts';
import { isAlreadyExists, isNotFound, isVerdict, TransportError } from './status-error.ts';

export interface EventNote {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  /** One sentence, for people; cut at 1,024 characters, the server's limit. */
  readonly message: string;
  /** Part of the Event's name: of several processes one writes it. */
  readonly once?: string;
}

export interface EventRecorderOptions extends Partial<Tools> {
  readonly client: KubeClient;
  /** Who reports: `refit-controller`. */
  readonly component: string;
}

interface Series {
  readonly event: Event;
  count: number;
  created: boolean;
  attempts: number;
}

/** Writes per second and at once: enough for a large rollout, little enough for an API server. */
const RATE = { perSecond: 10, burst: 100 };
/** Series in memory; the least recent is dropped, and its next Event starts a new one. */
const MAX_SERIES = 1_000;
const MAX_ATTEMPTS = 3;
const RETRY_MS = 1_000;
const DEADLINE_MS = 10_000;
/** Events that may wait to be written, a few for each node of a large cluster: more pile up only while the server cannot be reached. */
const MAX_UNWRITTEN = 5_000;
/** Milliseconds at the end of the process for Events that still wait. */
const LAST_MS = 5_000;

export type EventRecorder = ReturnType<typeof eventRecorder>;

/** A part of a process. Stop it after every part that records Events. */
export function eventRecorder({ client, component, ...given }: EventRecorderOptions) {
  const { clock, random, log } = { ...DEFAULT_TOOLS, ...given };
  const takeToken = createTokenBucket(clock, RATE);
  const shouldLog = sparingly(clock);
  const known = new Map<string, Series>();
  const unwritten = new Set<Series>();
  const over = new AbortController();
  let writing: Promise<void> | undefined;
  const drop = (reason: string | undefined): void => log.warn('event dropped', { reason });
  const begin = (object: KubeObject, note: EventNote, now: string): Series => {
    const suffix = note.once ?? Math.floor(random() * 2 ** 48).toString(16);
    return {
      event: eventOf(object, note, { component, suffix, now }),
      count: 0,
      created: false,
      attempts: 0,
    };
  };
  const remember = (key: string, series: Series): void => {
    known.delete(key);
    known.set(key, series);
    const [oldest] = known.keys();
    if (known.size > MAX_SERIES && oldest !== undefined) known.delete(oldest);
  };
  const pause = async (ms: number): Promise<void> => {
    if (ms > 0) await sleep(clock, ms, over.signal).catch(() => undefined);
  };
  const write = async (series: Series): Promise<void> => {
    try {
      await send(series, client, over.signal);
      series.attempts = 0;
    } catch (error) {
      const problem = messageOf(error);
      // A server that does not answer may be restarting: what it missed is written when it is back.
      const isAway = error instanceof TransportError;
      if (!isAway || shouldLog(problem))
        log.warn('cannot write an event', { reason: series.event.reason, problem });
      // The answer to an earlier attempt was lost.
      if (isAlreadyExists(error)) series.created = true;
      else if (series.created && isNotFound(error)) series.created = false;
      else if (isVerdict(error) || (!isAway && ++series.attempts >= MAX_ATTEMPTS)) return;
      else await pause(RETRY_MS);
      unwritten.add(series);
    }
  };
  const writeAll = async (): Promise<void> => {
    for (let [series] = unwritten; series; [series] = unwritten) {
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
    /** Returns at once and never throws; what cannot be written is logged and dropped. */
    record(object: KubeObject, note: EventNote): void {
      if (over.signal.aborted || unwritten.size >= MAX_UNWRITTEN) return drop(note.reason);
      const { kind, metadata } = object;
      const { namespace, name, uid } = metadata;
      const key = [kind, namespace, name, uid, note.type, note.reason, note.message].join('\0');
      const now = rfc3339(clock.now());
      const series = known.get(key) ?? begin(object, note, now);
      series.count++;
      series.event.lastTimestamp = now;
      remember(key, series);
      unwritten.add(series);
      writing ??= writeAll().finally(() => void (writing = undefined));
    },
    /** Resolves some seconds after `abort` at the latest; Events that are not written by then are dropped. */
    async run(abort: AbortSignal): Promise<void> {
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

function eventOf(
  { apiVersion, kind, metadata: { name, namespace, uid } }: KubeObject,
  { type, reason, message }: EventNote,
  {
    component,
    suffix,
    now,
  }: { readonly component: string; readonly suffix: string; readonly now: string },
): Event {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    // Events on cluster-scoped objects must be in `default`.
    metadata: { name: `${name.slice(0, 200)}.${suffix}`, namespace: namespace ?? 'default' },
    involvedObject: defined({ apiVersion, kind, name, namespace, uid }),
    type,
    reason,
    message: printable(message).slice(0, 1_024),
    firstTimestamp: now,
    source: { component },
    reportingComponent: component,
  };
}

async function send(series: Series, client: KubeClient, abort: AbortSignal): Promise<void> {
  const { event, count } = series;
  const { name, namespace } = event.metadata;
  const options = { namespace, deadlineMs: DEADLINE_MS, abort };
  if (series.created) {
    const patch = { count, lastTimestamp: event.lastTimestamp };
    await client.patch(events, name, patch, { ...options, type: 'merge' });
  } else {
    await client.create(events, { ...event, count }, options);
    series.created = true;
  }
}
