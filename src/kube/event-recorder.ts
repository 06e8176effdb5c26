/** Writes Events on objects; a repeated Event counts up instead of becoming another object. */
import { createTokenBucket, rfc3339, sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { defined } from '../util/json.ts';
import { sparingly } from '../util/log.ts';
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

/** A part of a process. Stop it after every part that records Events. */
export class EventRecorder {
  readonly name = 'events';
  readonly #options: EventRecorderOptions & Tools;
  readonly #takeToken: () => number;
  readonly #series = new Map<string, Series>();
  readonly #unwritten = new Set<Series>();
  readonly #over = new AbortController();
  #writing: Promise<void> | undefined;
  readonly #shouldLog: (problem: string) => boolean;

  constructor(options: EventRecorderOptions) {
    this.#options = { ...DEFAULT_TOOLS, ...options };
    this.#takeToken = createTokenBucket(this.#options.clock, RATE);
    this.#shouldLog = sparingly(this.#options.clock);
  }

  /** Returns at once and never throws; what cannot be written is logged and dropped. */
  record(object: KubeObject, note: EventNote): void {
    if (this.#over.signal.aborted || this.#unwritten.size >= MAX_UNWRITTEN) return this.#drop(note.reason);
    const { kind = '', metadata } = object;
    const key = [kind, metadata.namespace, metadata.name, metadata.uid, note.type, note.reason, note.message].join(
      '\0',
    );
    const series = this.#series.get(key) ?? this.#begin(object, note);
    series.count++;
    series.event.lastTimestamp = rfc3339(this.#options.clock.now());
    this.#remember(key, series);
    this.#unwritten.add(series);
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  async flush(): Promise<void> {
    await this.#writing;
  }

  /** Resolves some seconds after `abort` at the latest; Events that are not written by then are dropped. */
  async run(abort: AbortSignal): Promise<void> {
    await aborted(abort);
    const cancel = this.#options.clock.schedule(LAST_MS, () =>
      this.#over.abort(new Error('no time is left to write events')),
    );
    await this.flush();
    cancel();
    this.#over.abort(new Error('the event recorder has stopped'));
  }

  #drop(reason: string | undefined): void {
    this.#options.log.warn('event dropped', { reason });
  }

  #remember(key: string, series: Series): void {
    this.#series.delete(key);
    this.#series.set(key, series);
    const [oldest] = this.#series.keys();
    if (this.#series.size > MAX_SERIES && oldest !== undefined) this.#series.delete(oldest);
  }

  #begin({ apiVersion, kind, metadata }: KubeObject, { type, reason, message, once }: EventNote): Series {
    const { component, random } = this.#options;
    const { name, namespace, uid } = metadata;
    // Events on cluster-scoped objects must be in `default`.
    const home = namespace ?? 'default';
    const suffix = once ?? Math.floor(random() * 2 ** 48).toString(16);
    const event: Event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name.slice(0, 200)}.${suffix}`, namespace: home },
      involvedObject: defined({ apiVersion, kind, name, namespace, uid }),
      type,
      reason,
      message: message.slice(0, 1_024),
      firstTimestamp: rfc3339(this.#options.clock.now()),
      source: { component },
      reportingComponent: component,
    };
    return { event, count: 0, created: false, attempts: 0 };
  }

  async #writeAll(): Promise<void> {
    for (let [series] = this.#unwritten; series; [series] = this.#unwritten) {
      await this.#pause(this.#takeToken());
      this.#unwritten.delete(series);
      if (this.#over.signal.aborted) this.#drop(series.event.reason);
      else await this.#write(series);
    }
  }

  async #pause(ms: number): Promise<void> {
    if (ms > 0) await sleep(this.#options.clock, ms, this.#over.signal).catch(() => undefined);
  }

  async #write(series: Series): Promise<void> {
    try {
      await this.#send(series);
      series.attempts = 0;
    } catch (error) {
      const problem = messageOf(error);
      if (!(error instanceof TransportError) || this.#shouldLog(problem))
        this.#options.log.warn('cannot write an event', { reason: series.event.reason, problem });
      // The answer to an earlier attempt was lost.
      if (isAlreadyExists(error)) series.created = true;
      else if (series.created && isNotFound(error)) series.created = false;
      else if (isVerdict(error) || this.#isOver(error, series)) return;
      else await this.#pause(RETRY_MS);
      this.#unwritten.add(series);
    }
  }

  /** A server that does not answer may be restarting: what it missed is written when it is back. */
  #isOver(thrown: unknown, series: Series): boolean {
    return !(thrown instanceof TransportError) && ++series.attempts >= MAX_ATTEMPTS;
  }

  async #send(series: Series): Promise<void> {
    const { event, count } = series;
    const { name, namespace } = event.metadata;
    const options = { namespace, deadlineMs: DEADLINE_MS, abort: this.#over.signal };
    if (series.created) {
      const patch = { count, lastTimestamp: event.lastTimestamp };
      await this.#options.client.patch(events, name, patch, { ...options, type: 'merge' });
    } else {
      await this.#options.client.create(events, { ...event, count }, options);
      series.created = true;
    }
  }
}
