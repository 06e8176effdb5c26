/** Carries out one call from credentials to the parsed answer: deadline, 401, Retry-After, metrics. */
import type { IncomingMessage } from 'node:http';
import { textIn } from '../../util/bounded-file.ts';
import { type Clock, sleep, systemClock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { untilAborted } from '../../util/waits.ts';
import { type Call, type Caller, queryText } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { type Credentials, credentialsOf, type Identity } from '../config/credentials.ts';
import type { Status } from '../resources.ts';
import { AnswerError, StatusError, TransportError } from '../status-error.ts';
import { jsonLines } from './json-lines.ts';
import type { ServerAddresses } from './server-addresses.ts';
import { type TimeLimit, timeLimit } from './time-limit.ts';
import { Transport } from './transport.ts';

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
  /** More places where the server answers. */
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

export class Requester implements Caller {
  readonly #options: RequesterOptions;
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  readonly #credentials: Credentials;
  readonly #transport: Transport;
  readonly #server: string;

  constructor(config: ClusterConfig, options: RequesterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#credentials = options.credentials ?? credentialsOf(config, this.#clock, this.#closed.signal);
    this.#transport = new Transport(config, options.addresses);
    this.#server = printableUrl(config.server);
  }

  async text(call: Call): Promise<{ status: number; body: string }> {
    return await this.#within(call, async (limit) => {
      const response = await this.#open(call, limit);
      return { status: response.statusCode ?? 0, body: await readText(response, this.#options.mostBytes) };
    });
  }

  async json<T>(call: Call): Promise<T> {
    return await this.#within(call, async (limit) => {
      const response = await this.#open(call, limit);
      if (!isSuccess(response)) throw await this.#refusal(call, response);
      const answer = parseAnswer(response, await readText(response, this.#options.mostBytes));
      assertExpected(call, answer);
      return answer as T;
    });
  }

  async *stream<T>(call: Call, idleMs: number): AsyncGenerator<T> {
    using limit = this.#begin(call);
    try {
      const response = await this.#open(call, limit);
      if (!isSuccess(response)) throw await this.#refusal(call, response);
      const lines = jsonLines(alive(response, limit, idleMs), MOST_EVENT_BYTES);
      for await (const value of lines) {
        assertExpected(call, value);
        yield value as T;
      }
    } catch (error) {
      const isOdd = error instanceof SyntaxError;
      throw this.#failure(call, limit, isOdd ? new AnswerError('the watch is not JSON', { cause: error }) : error);
    }
  }

  close(): void {
    this.#closed.abort();
    this.#transport.close();
  }

  async #within<T>(call: Call, work: (limit: TimeLimit) => Promise<T>): Promise<T> {
    using limit = this.#begin(call);
    try {
      return await work(limit);
    } catch (error) {
      throw this.#failure(call, limit, error);
    }
  }

  #begin(call: Call): TimeLimit {
    const limit = timeLimit(this.#clock, call.abort, this.#closed.signal);
    limit.allow(call.deadlineMs, `no answer within ${formatDuration(call.deadlineMs)}`);
    return limit;
  }

  /** Sends once more after a 401, and as often as the server asks for a retry. */
  async #open(call: Call, limit: TimeLimit): Promise<IncomingMessage> {
    let refreshed = false;
    for (;;) {
      const identity = await this.#identify(call, limit);
      const response = await this.#attempt(call, identity, limit);
      const waitMs = retryAfterMs(response);
      const mayWait = IDEMPOTENT.has(call.method) && waitMs !== undefined && waitMs < limit.remaining;
      const isOverload = response.statusCode === 429 || response.statusCode === 503;
      const isRefused = response.statusCode === 401 && !refreshed && this.#credentials.refresh(identity);
      if (!isRefused && !(isOverload && mayWait)) return response;
      release(response);
      if (isRefused) refreshed = true;
      else await sleep(this.#clock, Math.max(waitMs ?? 0, SHORTEST_PAUSE_MS), limit.abort);
    }
  }

  async #identify(call: Call, limit: TimeLimit): Promise<Identity> {
    try {
      const identity = await untilAborted(this.#credentials.current(), limit.abort);
      // A suspended process may resume here long after the deadline, and must not send a write that is no longer allowed.
      limit.enforce();
      return identity;
    } catch (error) {
      throw this.#failure(call, limit, error, false);
    }
  }

  async #attempt(call: Call, identity: Identity, limit: TimeLimit): Promise<IncomingMessage> {
    const { userAgent = 'refit', onRequest } = this.#options;
    const startedAt = this.#clock.monotonic();
    let code = 0;
    try {
      const response = await this.#transport.open({
        method: call.method,
        path: call.path + queryText(call.query ?? {}),
        headers: {
          ...identity.headers,
          accept: 'application/json',
          'user-agent': userAgent,
          ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
        },
        tls: identity.tls,
        body: call.body === undefined ? undefined : JSON.stringify(call.body),
        abort: limit.abort,
      });
      code = response.statusCode ?? 0;
      return response;
    } finally {
      const { verb, method, resource } = call;
      const { host } = new URL(this.#server);
      onRequest?.({ verb, method, host, resource, code, ms: this.#clock.monotonic() - startedAt });
    }
  }

  async #refusal(call: Call, response: IncomingMessage): Promise<StatusError> {
    const body = await readText(response, MOST_REFUSAL_BYTES);
    const problem = response.statusCode === 401 ? await this.#credentials.certificateProblem() : undefined;
    const cause = problem === undefined ? {} : { cause: new Error(problem) };
    return new StatusError(toStatus(call, response, body), { server: this.#server, ...cause });
  }

  #failure(call: Call, limit: TimeLimit, error: unknown, maybeApplied = call.method !== 'GET'): unknown {
    if (error instanceof StatusError || error instanceof TransportError) return error;
    const cause: unknown = limit.abort.aborted ? limit.abort.reason : error;
    const server = this.#server;
    return new TransportError(`${call.method} ${server}${call.path}`, { cause, server, maybeApplied });
  }
}

/** A server must not fill our memory. */
async function readText(response: IncomingMessage, mostBytes = 128 * 1024 * 1024): Promise<string> {
  return await textIn(response, mostBytes, `the answer has more than ${mostBytes} bytes`, AnswerError);
}

function parseAnswer(response: IncomingMessage, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    const type = response.headers['content-type'] ?? 'text without a type';
    const start = body.trim().slice(0, 60);
    throw new AnswerError(`it answered ${response.statusCode} with ${type}, not with JSON: "${start}"`, {
      cause: error,
    });
  }
}

function assertExpected({ check }: Call, answer: unknown): void {
  const problem = check?.(answer);
  if (problem !== undefined) throw new AnswerError(problem);
}

/** Reading a short answer to its end frees the connection for the next request; a long one costs more than a connection. */
function release(response: IncomingMessage): void {
  const bytes = Number(response.headers['content-length'] ?? Infinity);
  if (bytes <= MOST_REFUSAL_BYTES) response.resume();
  else response.destroy();
}

async function* alive(response: IncomingMessage, limit: TimeLimit, idleMs: number): AsyncGenerator<Buffer> {
  const onChunk = (): void => limit.allow(idleMs, `the watch sent nothing for ${formatDuration(idleMs)}`);
  onChunk();
  for await (const chunk of response as AsyncIterable<Buffer>) {
    onChunk();
    yield chunk;
  }
}

function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
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
  const given = isRecord(value) && value['kind'] === 'Status' ? (value as unknown as Status) : undefined;
  if (given) return { ...given, code, details: { ...details, ...given.details } };
  const text = body.trim().slice(0, 200) || response.statusMessage || 'no text';
  const reason = code === 404 ? 'NotFound' : '';
  return {
    kind: 'Status',
    status: 'Failure',
    code,
    reason,
    details,
    message: `${call.method} ${call.path}: ${code} ${text}`,
  };
}
