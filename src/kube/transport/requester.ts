/** Carries out one call from credentials to the parsed answer: deadline, 401, Retry-After, metrics. */
import type { IncomingMessage } from 'node:http';
import { textIn } from '../../util/bounded-file.ts';
import { type Clock, sleep, systemClock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { RefitError } from '../../util/errors.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { onAbort, untilAborted } from '../../util/waits.ts';
import { type Call, type Caller, queryText } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { type Credentials, credentialsOf, type Identity } from '../config/credentials.ts';
import { pluginError } from '../config/exec-plugin.ts';
import type { Status } from '../resources.ts';
import { AnswerError, StatusError, TransportError } from '../status-error.ts';
import type { ServerAddresses } from './server-addresses.ts';
import { transportTo } from './transport.ts';

/** One attempt, for metrics; `code` is 0 when no answer came. */
export interface RequestRecord extends Pick<Call, 'verb' | 'resource'> {
  readonly method: string;
  readonly host: string;
  readonly code: number;
  /** Until the head of the answer. */
  readonly ms: number;
}

export interface RequesterOptions {
  readonly clock?: Clock;
  readonly userAgent?: string;
  /** Bytes of the largest answer that is read; 128 MiB by default, for pages of large objects. */
  readonly mostBytes?: number;
  readonly addresses?: ServerAddresses;
  /** Those of the connection by default. Clients that come and go share them: a plugin may ask a person. */
  readonly credentials?: Credentials;
  /** Called for each attempt, including retries. */
  readonly onRequest?: (record: RequestRecord) => void;
}

/** Largest event of a watch: servers store objects of at most about 3 MB. */
const MOST_EVENT_BYTES = 16 * 1024 * 1024;
/** A refusal is a short Status; more of it is not read. */
const MOST_REFUSAL_BYTES = 1024 * 1024;

const IDEMPOTENT = new Set(['GET', 'PUT', 'DELETE']);

/** Milliseconds: a server or proxy that asks for an immediate retry must not make us spin. */
const SHORTEST_PAUSE_MS = 100;

export function requesterTo(config: ClusterConfig, options: RequesterOptions): Caller {
  const { clock = systemClock, mostBytes = 128 * 1024 * 1024 } = options;
  const closed = new AbortController();
  const sender = senderTo(config, options, closed.signal);
  const begin = (call: Call): TimeLimit => {
    const limit = timeLimit(clock, call.abort, closed.signal);
    limit.allow(call.deadlineMs, `no answer within ${formatDuration(call.deadlineMs)}`);
    return limit;
  };
  const within = async <T>(call: Call, work: (limit: TimeLimit) => Promise<T>): Promise<T> => {
    using limit = begin(call);
    try {
      return await work(limit);
    } catch (error) {
      throw sender.failure(call, limit, error);
    }
  };
  return {
    text: async (call) =>
      await within(call, async (limit) => {
        const response = await sender.open(call, limit);
        return { status: response.statusCode ?? 0, body: await readText(response, mostBytes) };
      }),
    json: async <T>(call: Call) =>
      await within(call, async (limit) => {
        const response = await sender.openOrThrow(call, limit);
        const answer = parseAnswer(response, await readText(response, mostBytes));
        assertExpected(call, answer);
        return answer as T;
      }),
    async *stream<T>(call: Call, idleMs: number) {
      using limit = begin(call);
      try {
        const response = await sender.openOrThrow(call, limit);
        for await (const value of jsonLines(alive(response, limit, idleMs), MOST_EVENT_BYTES)) {
          assertExpected(call, value);
          yield value as T;
        }
      } catch (error) {
        const isOdd = error instanceof SyntaxError;
        const thrown = isOdd ? new AnswerError('the watch is not JSON', { cause: error }) : error;
        throw sender.failure(call, limit, thrown);
      }
    },
    close() {
      closed.abort();
      sender.close();
    },
  };
}

/** Sends calls with the credentials of a connection. */
function senderTo(config: ClusterConfig, options: RequesterOptions, closed: AbortSignal) {
  const { clock = systemClock, userAgent = 'refit', onRequest } = options;
  const { credentials = credentialsOf(config, clock, closed) } = options;
  const transport = transportTo(config, options.addresses);
  const server = printableUrl(config.server);
  const { host } = new URL(server);
  const failure = (
    call: Call,
    limit: TimeLimit,
    error: unknown,
    maybeApplied = call.method !== 'GET',
  ): unknown => {
    if (error instanceof StatusError || error instanceof TransportError) return error;
    const cause: unknown =
      limit.abort.aborted && !(error instanceof RefitError) ? limit.abort.reason : error;
    return new TransportError(`${call.method} ${server}${call.path}`, {
      cause,
      server,
      maybeApplied,
    });
  };
  const identify = async (call: Call, limit: TimeLimit): Promise<Identity> => {
    try {
      const identity = await untilAborted(credentials.current(), limit.abort);
      // A suspended process may resume here long after the deadline, and must not send a write that is no longer allowed.
      limit.enforce();
      return identity;
    } catch (error) {
      const { exec } = config.user;
      const why = `gave no credential within ${formatDuration(call.deadlineMs)}`;
      throw failure(
        call,
        limit,
        exec && limit.isOver() ? pluginError(exec.command, why) : error,
        false,
      );
    }
  };
  const attempt = async (
    call: Call,
    { headers, tls }: Identity,
    { abort }: TimeLimit,
  ): Promise<IncomingMessage> => {
    const { verb, method, resource, query = {}, contentType = 'application/json' } = call;
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const type = body === undefined ? {} : { 'content-type': contentType };
    const allHeaders = { ...headers, accept: 'application/json', 'user-agent': userAgent, ...type };
    const startedAt = clock.monotonic();
    let code = 0;
    try {
      const path = call.path + queryText(query);
      const response = await transport.open({
        method,
        path,
        headers: allHeaders,
        tls,
        body,
        abort,
      });
      code = response.statusCode ?? 0;
      return response;
    } finally {
      onRequest?.({ verb, method, host, resource, code, ms: clock.monotonic() - startedAt });
    }
  };
  /** Sends once more after a 401, and as often as the server asks for a retry. */
  const open = async (call: Call, limit: TimeLimit): Promise<IncomingMessage> => {
    let refreshed = false;
    for (;;) {
      const identity = await identify(call, limit);
      const response = await attempt(call, identity, limit);
      const waitMs = retryAfterMs(response);
      const mayWait =
        IDEMPOTENT.has(call.method) && waitMs !== undefined && waitMs < limit.remaining;
      const isOverload = response.statusCode === 429 || response.statusCode === 503;
      const isRefused = response.statusCode === 401 && !refreshed && credentials.refresh(identity);
      if (!isRefused && !(isOverload && mayWait)) return response;
      // A short answer that is read frees the connection for the next request; a long one costs more than a connection.
      if (Number(response.headers['content-length'] ?? Infinity) <= MOST_REFUSAL_BYTES)
        response.resume();
      else response.destroy();
      if (isRefused) refreshed = true;
      else await sleep(clock, Math.max(waitMs ?? 0, SHORTEST_PAUSE_MS), limit.abort);
    }
  };
  return {
    failure,
    open,
    /** Rejects with a StatusError when the server refuses. */
    async openOrThrow(call: Call, limit: TimeLimit): Promise<IncomingMessage> {
      const response = await open(call, limit);
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode < 300) return response;
      const body = await readText(response, MOST_REFUSAL_BYTES);
      const problem = statusCode === 401 ? await credentials.certificateProblem() : undefined;
      const cause = problem === undefined ? {} : { cause: new Error(problem) };
      throw new StatusError(toStatus(call, response, body), { server, ...cause });
    },
    close: () => transport.close(),
  };
}

/** A server must not fill our memory. */
async function readText(response: IncomingMessage, mostBytes: number): Promise<string> {
  return await textIn(
    response,
    mostBytes,
    `the answer has more than ${mostBytes} bytes`,
    AnswerError,
  );
}

function parseAnswer(response: IncomingMessage, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    const type = response.headers['content-type'] ?? 'text without a type';
    const start = body.trim().slice(0, 60);
    const message = `it answered ${response.statusCode} with ${type}, not with JSON: "${start}"`;
    throw new AnswerError(message, { cause: error });
  }
}

function assertExpected({ check }: Call, answer: unknown): void {
  const problem = check?.(answer);
  if (problem !== undefined) throw new AnswerError(problem);
}

async function* alive(
  response: IncomingMessage,
  limit: TimeLimit,
  idleMs: number,
): AsyncGenerator<Buffer> {
  const whenIdle = `the watch sent nothing for ${formatDuration(idleMs)}`;
  const onChunk = (): void => limit.allow(idleMs, whenIdle);
  onChunk();
  for await (const chunk of response as AsyncIterable<Buffer>) {
    onChunk();
    yield chunk;
  }
}

/** Milliseconds of the Retry-After header; API servers send whole seconds, never a date. */
function retryAfterMs(response: IncomingMessage): number | undefined {
  const seconds = Number.parseInt(response.headers['retry-after'] ?? '', 10);
  return Number.isNaN(seconds) ? undefined : seconds * 1000;
}

/** The server's Status, or one made from other content (a proxy's page, `404 page not found`). */
function toStatus(call: Call, response: IncomingMessage, body: string): Status {
  const code = response.statusCode ?? 0;
  const waitMs = retryAfterMs(response);
  const details = waitMs === undefined ? {} : { retryAfterSeconds: waitMs / 1000 };
  const value = parseJson(body);
  const given =
    isRecord(value) && value['kind'] === 'Status' ? (value as unknown as Status) : undefined;
  if (given) return { ...given, code, details: { ...details, ...given.details } };
  const text = body.trim().slice(0, 200) || response.statusMessage || 'no text';
  const message = `${call.method} ${call.path}: ${code} ${text}`;
  return {
    kind: 'Status',
    status: 'Failure',
    code,
    reason: code === 404 ? 'NotFound' : '',
    details,
    message,
  };
}

/** Aborts when the time is over, the caller aborts, or the client was closed. Dispose of it when the request is over. */
export function timeLimit(clock: Clock, outer: AbortSignal | undefined, closed?: AbortSignal) {
  const controller = new AbortController();
  const listening = new DisposableStack();
  const byCaller = (): void =>
    controller.abort(new Error('aborted by the caller', { cause: outer?.reason }));
  listening.use(onAbort(outer, byCaller));
  listening.use(onAbort(closed, () => controller.abort(new Error('the client was closed'))));
  let stopTimer = (): void => undefined;
  let [expiresAt, firesAt] = [Infinity, Infinity];
  let complaint = '';
  let late: Error | null = null;
  const arm = (): void => {
    firesAt = expiresAt;
    stopTimer = clock.schedule(expiresAt - clock.monotonic(), () => {
      if (expiresAt > clock.monotonic()) arm();
      else controller.abort((late = new Error(complaint)));
    });
  };
  return {
    abort: controller.signal,
    /** True if the time ran out, and nobody gave up before. */
    isOver: () => controller.signal.reason === late,
    get remaining() {
      return expiresAt - clock.monotonic();
    },
    /** Allows `ms` from now, instead of any earlier limit. Costs little: a timer that fires sooner is left as it is. */
    allow(ms: number, whenLate: string): void {
      [expiresAt, complaint] = [clock.monotonic() + ms, whenLate];
      if (expiresAt >= firesAt) return;
      stopTimer();
      arm();
    },
    /** Throws after the limit, even when its timer has not fired yet. */
    enforce(): void {
      if (this.remaining <= 0)
        controller.abort(new Error('the deadline passed before the request was sent'));
      controller.signal.throwIfAborted();
    },
    [Symbol.dispose](): void {
      stopTimer();
      listening.dispose();
    },
  };
}

export type TimeLimit = ReturnType<typeof timeLimit>;

const NEWLINE = 10;

/** Reads and copies each byte once. Throws a SyntaxError for a line that is not JSON, too long, or cut off by the end. */
export async function* jsonLines(
  chunks: AsyncIterable<Buffer>,
  mostBytes = Infinity,
): AsyncGenerator {
  let parts: Buffer[] = [];
  let held = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      const [only] = parts;
      const line = (parts.length === 1 && only ? only : Buffer.concat(parts))
        .toString('utf8')
        .trim();
      parts = [];
      held = 0;
      start = end + 1;
      if (line !== '') yield JSON.parse(line) as unknown;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    held += chunk.length - start;
    if (held > mostBytes) throw new SyntaxError(`a line has more than ${mostBytes} bytes`);
  }
  if (parts.length > 0) throw new SyntaxError('the stream ended inside a line');
}
