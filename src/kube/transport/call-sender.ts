/**
 * Sends one call with the credentials of a connection. It handles the answer 401 and Retry-After,
 * and reports each attempt for metrics.
 */
import type { IncomingMessage } from 'node:http';
import { type Clock, sleep, systemClock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { RefitError } from '../../util/errors.ts';
import { isSuccess } from '../../util/http-status.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { untilAborted } from '../../util/waits.ts';
import { type Call, queryText } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { type Credentials, credentialsOf, type Identity } from '../config/credentials.ts';
import { pluginError } from '../config/exec-plugin.ts';
import { isMissingRight, StatusError, TransportError } from '../status-error.ts';
import { readText, retryAfterMs, toStatus } from './answer.ts';
import type { ServerAddresses } from './server-addresses.ts';
import { type StartingServer, startingServer } from './starting-server.ts';
import type { TimeLimit } from './time-limit.ts';
import { transportTo } from './transport.ts';

/** Describes one attempt, for metrics. `code` is 0 if no answer came. */
export interface RequestRecord extends Pick<Call, 'verb' | 'resource'> {
  readonly method: string;
  readonly host: string;
  readonly code: number;
  /** Milliseconds until the head of the answer. */
  readonly ms: number;
}

export interface RequesterOptions {
  readonly clock?: Clock;
  readonly userAgent?: string;
  /** The most bytes of an answer. The default is 128 MiB, for pages of large objects. */
  readonly mostBytes?: number;
  readonly addresses?: ServerAddresses;
  /**
   * The credentials to use. The default is the credentials of the connection. Short-lived clients share credentials,
   * because a plugin may prompt the user.
   */
  readonly credentials?: Credentials;
  /** This function is called for each attempt, including retries. */
  readonly onRequest?: (record: RequestRecord) => void;
}

/** The most bytes of a refusal that are read. A refusal is a short Status. */
const MOST_REFUSAL_BYTES = 1024 * 1024;

/** Returns the question whether a server answers this path. */
function questionOf(path: string): Call {
  const deadlineMs = Number.POSITIVE_INFINITY;
  return { verb: 'get', resource: path.slice(1), method: 'GET', path, deadlineMs };
}

const IDEMPOTENT = new Set(['GET', 'PUT', 'DELETE']);

/**
 * The shortest pause before a retry in milliseconds. A server or proxy that asks for an immediate
 * retry must not cause a fast loop.
 */
const SHORTEST_PAUSE_MS = 100;

export interface CallSender {
  /**
   * Returns the error to throw for a failed call: a TransportError, or the StatusError of the
   * server.
   */
  readonly failure: (call: Call, limit: TimeLimit, error: unknown) => unknown;
  /**
   * Resolves with the head of the answer, which may be a refusal. It sends the call once more after
   * a 401, and again whenever the server asks for a retry.
   */
  readonly open: (call: Call, limit: TimeLimit) => Promise<IncomingMessage>;
  /** Does the same as `open`, but rejects with a StatusError if the server refuses. */
  readonly openOrThrow: (call: Call, limit: TimeLimit) => Promise<IncomingMessage>;
  readonly close: () => void;
}

/**
 * Returns a sender with the credentials of a connection. `closed` aborts when the client is closed.
 */
export function senderTo(
  config: ClusterConfig,
  options: RequesterOptions,
  closed: AbortSignal,
): CallSender {
  const { clock = systemClock, userAgent = 'refit', onRequest } = options;
  const { credentials = credentialsOf(config, clock, closed) } = options;
  const transport = transportTo(config, options.addresses);
  const server = printableUrl(config.server);
  const { host } = new URL(server);
  const failure = (call: Call, limit: TimeLimit, error: unknown): unknown =>
    failureOf(server, call, limit, error, call.method !== 'GET');
  const identify = async (call: Call, limit: TimeLimit): Promise<Identity> => {
    try {
      const identity = await untilAborted(credentials.current(), limit.abort);
      // A process that was suspended may resume here long after the deadline. It must not send a
      // write that is no longer allowed.
      limit.enforce();
      return identity;
    } catch (error) {
      const { exec } = config.user;
      if (!exec || !limit.isOver()) throw failureOf(server, call, limit, error, false);
      const why = `gave no credential within ${formatDuration(call.deadlineMs)}`;
      throw failureOf(server, call, limit, pluginError(exec.command, why), false);
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
      // The server may have stopped, and another process may answer next.
      if (code === 0 || code >= 500) starting.forget();
      onRequest?.({ verb, method, host, resource, code, ms: clock.monotonic() - startedAt });
    }
  };
  const askPath = async (question: Call, limit: TimeLimit): Promise<IncomingMessage> =>
    await attempt(question, await identify(question, limit), limit);
  const starting = startingServer({ clock, ask: codeOf(askPath) });
  const open = async (call: Call, limit: TimeLimit): Promise<IncomingMessage> => {
    let refreshed = false;
    for (;;) {
      const identity = await identify(call, limit);
      const response = await attempt(call, identity, limit);
      const waitMs = retryAfterMs(response);
      const mayWait =
        IDEMPOTENT.has(call.method) && waitMs !== undefined && waitMs < limit.remaining;
      const isRefused = response.statusCode === 401 && !refreshed && credentials.refresh(identity);
      if (!isRefused && !(isOverload(response) && mayWait)) return response;
      ignore(response);
      if (isRefused) refreshed = true;
      else await sleep(clock, Math.max(waitMs ?? 0, SHORTEST_PAUSE_MS), limit.abort);
    }
  };
  return {
    failure,
    open,
    openOrThrow: throwing({ open, starting, server, credentials }),
    close: () => transport.close(),
  };
}

/** Returns a function that resolves with the code of the answer; with 0 if no answer comes. */
function codeOf(ask: (question: Call, limit: TimeLimit) => Promise<IncomingMessage>) {
  return async (path: string, limit: TimeLimit): Promise<number> => {
    try {
      const response = await ask(questionOf(path), limit);
      ignore(response);
      return response.statusCode ?? 0;
    } catch {
      limit.enforce();
      return 0;
    }
  };
}

interface Refusable extends Pick<CallSender, 'open'> {
  readonly starting: StartingServer;
  readonly server: string;
  readonly credentials: Credentials;
}

/** Returns `openOrThrow` of a sender. It does not believe a server that refuses everything because it has just started. */
function throwing({ open, starting, server, credentials }: Refusable): CallSender['openOrThrow'] {
  return async (call, limit) => {
    const response = await open(call, limit);
    if (isSuccess(response.statusCode ?? 0)) return response;
    const refusal = await refusalOf(call, response, server, credentials);
    const isOfRights: boolean = isMissingRight(refusal);
    if (!isOfRights) throw refusal;
    const verdict = await starting.judge(limit);
    if (verdict === 'counts') throw refusal;
    if (verdict === 'starting') {
      const cause = new Error('the API server has just started, and has not read the roles yet');
      const options = { cause, server, maybeApplied: false };
      throw new TransportError(`${call.method} ${server}${call.path}`, options);
    }
    // The server may have become ready between its two answers. A refused call has changed nothing, so that it can be sent
    // again.
    const second = await open(call, limit);
    if (isSuccess(second.statusCode ?? 0)) return second;
    throw await refusalOf(call, second, server, credentials);
  };
}

function isOverload({ statusCode }: IncomingMessage): boolean {
  return statusCode === 429 || statusCode === 503;
}

/**
 * Returns the error to throw. `maybeApplied` says that the server may have carried out the call
 * nevertheless.
 */
function failureOf(
  server: string,
  call: Call,
  limit: TimeLimit,
  error: unknown,
  maybeApplied: boolean,
): unknown {
  if (error instanceof StatusError || error instanceof TransportError) return error;
  const cause: unknown =
    limit.abort.aborted && !(error instanceof RefitError) ? limit.abort.reason : error;
  return new TransportError(`${call.method} ${server}${call.path}`, {
    cause,
    server,
    maybeApplied,
  });
}

/**
 * Returns the refusal of the server. After a 401 its cause names the problem of the client
 * certificate, if there is one.
 */
async function refusalOf(
  call: Call,
  response: IncomingMessage,
  server: string,
  credentials: Credentials,
): Promise<StatusError> {
  const body = await readText(response, MOST_REFUSAL_BYTES);
  const problem = response.statusCode === 401 ? await credentials.certificateProblem() : undefined;
  const cause = problem === undefined ? {} : { cause: new Error(problem) };
  return new StatusError(toStatus(call, response, body), { server, ...cause });
}

/**
 * Discards an answer. Reading a short answer frees the connection for the next request. If the answer is long, a new
 * connection is cheaper.
 */
function ignore(response: IncomingMessage): void {
  const length = Number(response.headers['content-length'] ?? Infinity);
  if (length <= MOST_REFUSAL_BYTES) response.resume();
  else response.destroy();
}
