/** The HTTPS server of the hooks. It serves HTTP/2 and HTTP/1.1 on one port and limits its callers. */
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import {
  type CertificateFiles,
  followCertificate,
  readCertificate,
} from '../../../runtime/certificate.ts';
import type { Metrics } from '../../../runtime/metrics.ts';
import { parseGoDuration } from '../../../util/duration.ts';
import { listen } from '../../../util/listen.ts';
import type { Logger } from '../../../util/log.ts';
import { callerRefusal } from './client-names.ts';
import { DEFAULT_LIMITS, type Limits, limitConnections } from './connection-limits.ts';
import type { AnswerHook } from './hook-service.ts';
import { routeOf } from './routes.ts';

export interface ServerOptions {
  /** The address as `host:port`. Port 0 means any free port. */
  readonly address: string;
  readonly files: CertificateFiles;
  /** The subjects or DNS names of the certificates that may call. If undefined, every certificate of the CA may call. */
  readonly clientNames?: readonly string[] | undefined;
  /** The most milliseconds until a call is answered. The timeout of a caller may be shorter. */
  readonly callTimeoutMs: number;
  readonly answer: AnswerHook;
  readonly log: Logger;
  readonly metrics?: Pick<Metrics, 'hookCalled'>;
  readonly limits?: Limits;
}

/** Resolves when the server listens. Rejects with REFIT_FILE or REFIT_USAGE. */
export async function startExtensionServer(options: ServerOptions) {
  const { files, log } = options;
  const mutual =
    files.clientAuthority === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
  const limits = options.limits ?? DEFAULT_LIMITS;
  const server = createSecureServer({
    allowHTTP1: true,
    handshakeTimeout: limits.patienceMs,
    settings: { maxConcurrentStreams: limits.requests },
    ...mutual,
    ...(await readCertificate(files)),
  });
  const closeAll = limitConnections(server, limits, log, (socket) =>
    callerRefusal(socket, options.clientNames),
  );
  const load = { limits, requests: 0, bytes: 0 };
  server.on('request', (request, response) => {
    serve(options, load, request, response).catch((error: unknown) =>
      log.warn('a call failed', { from: request.socket.remoteAddress, reason: error }),
    );
  });
  const address = await listen(server, options.address);
  const following = followCertificate(files, (renewed) => server.setSecureContext(renewed), log);
  return {
    address,
    /** Stops the server and aborts running calls, which callers retry. */
    async close(): Promise<void> {
      following[Symbol.dispose]();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      closeAll();
      await closed;
    },
  };
}

interface Load {
  readonly limits: Limits;
  requests: number;
  bytes: number;
}

async function serve(
  options: ServerOptions,
  load: Load,
  request: Http2ServerRequest,
  response: Http2ServerResponse,
) {
  const { answer, callTimeoutMs, log, metrics } = options;
  const [path = '', query] = request.url.split('?', 2);
  const hook = routeOf(request.method, path);
  const began = performance.now();
  const called = (outcome: string): void =>
    metrics?.hookCalled(String(hook), outcome, performance.now() - began);
  const refuse = (code: number, headers: Record<string, string> = {}): void => {
    if (typeof hook === 'string') called(String(code));
    response.writeHead(code, headers).end();
    request.resume();
  };
  if (typeof hook === 'number') return refuse(hook, hook === 405 ? { allow: 'POST' } : {});
  if (load.requests >= load.limits.requests) return refuse(503);
  const own = { bytes: 0 };
  load.requests += 1;
  try {
    const body = await readBody(request, load, own);
    if (typeof body === 'number') return refuse(body);
    const answered = await answer(
      hook,
      body,
      answerWithin(new URLSearchParams(query).get('timeout'), callTimeoutMs),
    );
    called(answered.status);
    log.info('answered', { hook, status: answered.status, message: answered.message });
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answered));
  } finally {
    load.requests -= 1;
    load.bytes -= own.bytes;
  }
}

const TRAVEL_MS = 500;
const LEAST_MS = 100;

/**
 * Returns the number of milliseconds within which a call must be answered. `granted` is the value of `?timeout=`, a Go
 * duration.
 */
export function answerWithin(granted: string | null, limitMs: number): number {
  const ms = (parseGoDuration(granted ?? '') ?? 0) / 1e6;
  return Math.max(LEAST_MS, (ms > 0 ? Math.min(ms, limitMs) : limitMs) - TRAVEL_MS);
}

/**
 * Resolves with the body. Resolves with an HTTP status if the body is too slow or too large, or if all bodies together
 * are too large.
 */
async function readBody(request: Http2ServerRequest, load: Load, own: Pick<Load, 'bytes'>) {
  const { bodyBytes, bytesInFlight, patienceMs } = load.limits;
  const parts: Buffer[] = [];
  let refused: 408 | 413 | 503 | undefined;
  const late = setTimeout(() => {
    refused = 408;
    const isHttp2 = request.httpVersionMajor === 2;
    (isHttp2 ? request.stream : request.socket).destroy(
      new Error('the body did not arrive in time'),
    );
  }, patienceMs);
  try {
    for await (const part of request as AsyncIterable<Buffer>) {
      // A refused body is read to its end before the answer, because some callers read the answer only after they have
      // sent the whole body.
      if (refused !== undefined) continue;
      own.bytes += part.length;
      load.bytes += part.length;
      if (own.bytes > bodyBytes) refused = 413;
      else if (load.bytes > bytesInFlight) refused = 503;
      if (refused === undefined) parts.push(part);
      else parts.length = 0;
    }
    return refused ?? Buffer.concat(parts).toString('utf8');
  } finally {
    clearTimeout(late);
  }
}
