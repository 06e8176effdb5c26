/**
 * Sends spans to a collector with OTLP over HTTP, in the background. Its queue is bounded, and a collector that does not answer delays
 * nothing else. Its logs contain no header and no text of the collector.
 */
import { chunksOf, codeOf, getOnce, statusOf } from '../http/http-get.ts';
import type { Environment } from '../http/proxy-choice.ts';
import { textIn } from '../util/bounded-file.ts';
import { backoffDelay, type Clock, sleep } from '../util/clock.ts';
import { isSuccess } from '../util/http-status.ts';
import { isRecord, parseJson } from '../util/json.ts';
import { type Logger, sparingly } from '../util/log.ts';
import { printableUrl } from '../util/printable-url.ts';
import { scalarText } from '../util/scalar-text.ts';
import { aborted } from '../util/waits.ts';
import { exportRequest, type Span } from './otlp.ts';
import type { TraceSettings } from './settings.ts';

export type SpanOutcome = 'sent' | 'rejected' | 'dropped';

export interface ExporterParts extends Omit<TraceSettings, 'certificate'> {
  /** Certificate authorities in PEM. */
  readonly authority?: string | undefined;
  readonly version: string;
  readonly environment: Environment;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: { readonly spansEnded: (outcome: SpanOutcome, count: number) => void };
}

export interface TraceExporter {
  readonly name: string;
  /** Returns the number of spans that the queue can still accept. */
  room(): number;
  /** Queues the spans of one trace. Spans for which the queue has no room are dropped and counted. */
  add(spans: readonly Span[]): void;
  /** Sends spans until `stop` aborts, and then the remaining spans, for a few seconds at most. */
  run(stop: AbortSignal): Promise<void>;
}

/** The most spans that wait to be sent: a few MiB. */
export const MOST_QUEUED = 8192;
/** The most spans in one request. */
export const MOST_IN_REQUEST = 512;
const WITHIN_MS = 10_000;
/** Milliseconds after which a failing request is no longer tried again. */
export const GIVE_UP_MS = 5 * 60_000;
const LONGEST_PAUSE_MS = 60_000;
/** Milliseconds after `stop` in which the remaining spans are sent. */
const LAST_MS = 3_000;
const LONGEST_ANSWER = 64 * 1024;
/** The specification of OTLP allows a retry after these codes only. */
const RETRYABLE = [429, 502, 503, 504];

interface Attempt {
  /** The number of spans that the collector accepted; undefined if it did not accept the request. */
  readonly taken?: number;
  readonly problem?: string;
  /**
   * Milliseconds until the same request may be sent again. This is the time that the collector demands, or 0. Undefined
   * if the request must not be sent again.
   */
  readonly againMs?: number;
}

export function createTraceExporter(parts: ExporterParts): TraceExporter {
  const { clock, random, log, metrics } = parts;
  const address = printableUrl(parts.url.href);
  const shouldLog = sparingly(clock);
  let queue: Span[] = [];
  let wake = Promise.withResolvers<void>();

  const complain = (problem: string): void => {
    if (shouldLog(problem)) log.warn('the collector does not take traces', { address, problem });
  };

  /**
   * Sends one request until the collector has accepted or rejected it. After `stop`, the request is tried only once, at
   * most until `end`.
   */
  const deliver = async (batch: readonly Span[], stop: AbortSignal, end: AbortSignal) => {
    const body = JSON.stringify(exportRequest(batch, parts.resource, parts.version));
    const giveUpAt = clock.monotonic() + GIVE_UP_MS;
    for (let failures = 0; ; failures++) {
      const { taken, problem, againMs } = await attempt(parts, body, batch.length, end);
      if (problem !== undefined) complain(problem);
      if (taken !== undefined) {
        metrics.spansEnded('sent', taken);
        metrics.spansEnded('rejected', batch.length - taken);
        return;
      }
      if (againMs === undefined) return metrics.spansEnded('rejected', batch.length);
      const backoff = { base: 1000, cap: LONGEST_PAUSE_MS, random };
      const pauseMs = Math.max(againMs, backoffDelay(failures, backoff));
      if (!stop.aborted && clock.monotonic() + pauseMs <= giveUpAt)
        await sleep(clock, pauseMs, stop).catch(() => undefined);
      else return metrics.spansEnded('dropped', batch.length);
    }
  };

  return {
    name: 'traces',
    room: () => MOST_QUEUED - queue.length,
    add(spans) {
      const taken = spans.slice(0, MOST_QUEUED - queue.length);
      queue.push(...taken);
      if (taken.length < spans.length) metrics.spansEnded('dropped', spans.length - taken.length);
      wake.resolve();
    },
    async run(stop) {
      const end = new AbortController();
      const ending = aborted(stop).then(() => {
        wake.resolve();
        return clock.schedule(LAST_MS, () => end.abort());
      });
      while (!end.signal.aborted && !(stop.aborted && queue.length === 0)) {
        if (queue.length === 0) {
          await wake.promise;
          wake = Promise.withResolvers<void>();
          continue;
        }
        // The spans of a request stay in the queue until the request has ended, so that the limit of the queue counts
        // them, too.
        const batch = queue.slice(0, MOST_IN_REQUEST);
        await deliver(batch, stop, end.signal);
        queue = queue.slice(batch.length);
      }
      const cancel = await ending;
      cancel();
      metrics.spansEnded('dropped', queue.length);
      queue = [];
    },
  };
}

/** Sends the request once. */
async function attempt(
  { url, headers, authority, environment, clock }: ExporterParts,
  body: string,
  count: number,
  stop: AbortSignal,
): Promise<Attempt> {
  const late = AbortSignal.timeout(WITHIN_MS);
  const sent = { ...headers, 'content-type': 'application/json', 'user-agent': 'refit' };
  const asked = { method: 'POST', body, headers: sent, authority, environment } as const;
  try {
    const response = await getOnce(url, asked, AbortSignal.any([stop, late]));
    const { statusCode = 0 } = response;
    try {
      if (isSuccess(statusCode)) {
        // The status says that the collector accepted the spans. If the rest of the answer cannot be read, the spans
        // must not be sent again.
        const text = await textIn(chunksOf(response), LONGEST_ANSWER, 'too long').catch(() => '');
        return answerOf(text, count);
      }
      const problem = `it answered ${statusOf(response)}`;
      if (!RETRYABLE.includes(statusCode)) return { problem };
      return { problem, againMs: retryAfter(response.headers['retry-after'], clock.now()) };
    } finally {
      response.destroy();
    }
  } catch (error) {
    if (late.aborted)
      return { problem: `it did not answer within ${WITHIN_MS / 1000} s`, againMs: 0 };
    return { problem: `it cannot be reached${codeOf(error)}`, againMs: 0 };
  }
}

/**
 * Returns how many spans the collector accepted. An answer with a success code may reject some of the spans. Rejected
 * spans must not be sent again.
 */
function answerOf(text: string, count: number): Attempt {
  const answer = parseJson(text);
  const partial = isRecord(answer) ? answer['partialSuccess'] : undefined;
  const rejected = Number(scalarText(isRecord(partial) ? partial['rejectedSpans'] : 0));
  if (!Number.isSafeInteger(rejected) || rejected <= 0) return { taken: count };
  const lost = Math.min(rejected, count);
  return { taken: count - lost, problem: `it rejected ${lost} of ${count} spans` };
}

/**
 * Returns the milliseconds of a header Retry-After, which has seconds or a date; 0 if the header is absent or invalid.
 */
function retryAfter(text: string | undefined, now: number): number {
  if (text === undefined) return 0;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? 0 : Math.max(0, ms);
}
