/** Handles one exchange over HTTP: reads the request, serves it, and always writes an answer. */
import type { IncomingMessage } from 'node:http';
import { messageOf } from '../../src/util/errors.ts';
import { readBody } from './body.ts';
import type { Cluster } from './cluster.ts';
import { ApiFailure } from './failure.ts';
import { jsonReply, type Reply } from './reply.ts';
import { type ApiRequest, parseTarget, verbOf } from './request.ts';
import { route } from './router.ts';
import type { Sink } from './sink.ts';
import type { WatchHub } from './watch.ts';

/** One request and the code of its answer. */
export interface RequestRecord {
  readonly verb: string;
  /** `nodes`, `leases.coordination.k8s.io`, or the path if it names no resource. */
  readonly resource: string;
  readonly subresource: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly code: number;
  /** The sizes of both bodies in bytes. For a watch, `answer` is 0. */
  readonly bytes: { readonly request: number; readonly answer: number };
}

/** The parts of the server that every exchange needs. */
export interface Service {
  readonly cluster: Cluster;
  readonly hub: WatchHub;
  readonly onRequest: ((record: RequestRecord) => void) | undefined;
}

/**
 * Never rejects. An error that a handler throws becomes an answer. An error that is caused by a bug becomes an answer
 * with code 500.
 */
export async function answer(
  service: Service,
  incoming: IncomingMessage,
  response: Sink,
): Promise<void> {
  respond(service, await readRequest(incoming), response);
}

/** Does the same as `answer`, for a request that was not received over HTTP. */
export function respond(service: Service, request: ApiRequest | Error, response: Sink): void {
  let sent = 0;
  try {
    if (request instanceof Error) throw request;
    const outcome = route(service.cluster, request);
    if ('watch' in outcome) service.hub.serve(outcome, request, response);
    else sent = send(response, outcome, request.warnings);
  } catch (error) {
    const failure =
      error instanceof ApiFailure ? error : new ApiFailure(500, 'InternalError', messageOf(error));
    const { status } = failure;
    const retryAfter = status.details?.retryAfterSeconds;
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
    sent = send(
      response,
      jsonReply(status.code, status),
      request instanceof Error ? [] : request.warnings,
    );
  }
  if (!(request instanceof Error))
    service.onRequest?.(recordOf(request, response.statusCode, sent));
}

/** Returns the request, or an error that says what is wrong with it. */
async function readRequest(incoming: IncomingMessage): Promise<ApiRequest | Error> {
  const { method = 'GET', url = '/', headers } = incoming;
  try {
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    const [mediaType = ''] = (headers['content-type'] ?? '').split(';');
    const contentType = mediaType.trim();
    return {
      method,
      path: pathname,
      target: parseTarget(pathname),
      query: searchParams,
      contentType,
      accept: headers.accept ?? '',
      userAgent: headers['user-agent'] ?? '',
      body: await readBody(incoming, contentType),
      warnings: [],
    };
  } catch (error) {
    return error instanceof ApiFailure
      ? error
      : new ApiFailure(400, 'BadRequest', messageOf(error));
  }
}

/** Sends the answer, and returns the size of its body in bytes. */
function send(response: Sink, reply: Reply, warnings: readonly string[]): number {
  // Sends nothing if the client has closed the connection, or if its watch has begun.
  if (response.destroyed || response.headersSent) return 0;
  const { code, body, contentType = 'application/json' } = reply;
  const lines = warnings.map((text) => `299 - ${JSON.stringify(text)}`);
  if (lines.length > 0) response.setHeader('warning', lines);
  const length = Buffer.byteLength(body);
  response.writeHead(code, { 'content-type': contentType, 'content-length': length });
  response.end(body);
  return length;
}

function recordOf(request: ApiRequest, code: number, sent: number): RequestRecord {
  const { group = '', plural = '', subresource, namespace, name } = request.target ?? {};
  const resource = group === '' ? plural || request.path : `${plural}.${group}`;
  const verb = plural === '' ? request.method.toLowerCase() : verbOf(request, name);
  const bytes = { request: Buffer.byteLength(request.body), answer: sent };
  return { verb, resource, subresource, namespace, name, code, bytes };
}
