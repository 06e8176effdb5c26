/** Sends one call with the credentials of a connection: a 401, Retry-After and metrics. */
import type { IncomingMessage } from 'node:http';
import { type Clock, sleep, systemClock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { RefitError } from '../../util/errors.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { untilAborted } from '../../util/waits.ts';
import { type Call, queryText } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { type Credentials, credentialsOf, type Identity } from '../config/credentials.ts';
import { pluginError } from '../config/exec-plugin.ts';
import { StatusError, TransportError } from '../status-error.ts';
import { readText, retryAfterMs, toStatus } from './answer.ts';
import type { ServerAddresses } from './server-addresses.ts';
import type { TimeLimit } from './time-limit.ts';
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

/** A refusal is a short Status; more of it is not read. */
const MOST_REFUSAL_BYTES = 1024 * 1024;

const IDEMPOTENT = new Set(['GET', 'PUT', 'DELETE']);

/** Milliseconds: a server or proxy that asks for an immediate retry must not make us spin. */
const SHORTEST_PAUSE_MS = 100;

export interface CallSender {
  /** Returns the error to throw for a failure of the call: a TransportError, unless it is a verdict of the server. */
  readonly failure: (call: Call, limit: TimeLimit, error: unknown) => unknown;
  /** Resolves with the head of the answer, also of a refusal. Sends once more after a 401, and as often as the server asks for a retry. */
  readonly open: (call: Call, limit: TimeLimit) => Promise<IncomingMessage>;
  /** Like `open`, but rejects with a StatusError when the server refuses. */
  readonly openOrThrow: (call: Call, limit: TimeLimit) => Promise<IncomingMessage>;
  readonly close: () => void;
}

/** Returns a sender with the credentials of a connection. `closed` aborts when the client is closed. */
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
      // A suspended process may resume here long after the deadline, and must not send a write that is no longer allowed.
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
      onRequest?.({ verb, method, host, resource, code, ms: clock.monotonic() - startedAt });
    }
  };
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
    async openOrThrow(call, limit) {
      const response = await open(call, limit);
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode < 300) return response;
      throw await refusalOf(call, response, server, credentials);
    },
    close: () => transport.close(),
  };
}

function isOverload({ statusCode }: IncomingMessage): boolean {
  return statusCode === 429 || statusCode === 503;
}

/** `maybeApplied` says that the server may have carried out the call all the same. */
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

/** Returns the server's refusal; that of a 401 names a problem of the client certificate as its cause. */
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

/** A short answer that is read frees the connection for the next request; a long one costs more than a connection. */
function ignore(response: IncomingMessage): void {
  const length = Number(response.headers['content-length'] ?? Infinity);
  if (length <= MOST_REFUSAL_BYTES) response.resume();
  else response.destroy();
}
