/** The HTTPS server of the hooks: HTTP/2 and HTTP/1.1 on one port, and bodies of limited size. */
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { RefitError } from '../../util/errors.ts';
import { parseGoDuration } from '../../util/go-duration.ts';
import type { Logger } from '../../util/log.ts';
import { type CertificateFiles, followCertificate, readCertificate } from './certificate.ts';
import type { AnswerHook } from './hook-service.ts';
import { routeOf } from './routes.ts';

export interface ServerOptions {
  /** `host:port`; port 0 means any free port. */
  readonly address: string;
  readonly files: CertificateFiles;
  /** Milliseconds for one call, unless its caller allows less. */
  readonly callTimeoutMs: number;
  readonly answer: AnswerHook;
  readonly log: Logger;
}

export interface ExtensionServer {
  readonly address: AddressInfo;
  /** Aborts running calls: callers retry. */
  close(): Promise<void>;
}

/** As in other servers for these hooks. */
const MAX_BODY_BYTES = 20 * 1024 * 1024;

/** Resolves once it listens; rejects with REFIT_FILE or REFIT_USAGE. */
export async function startExtensionServer(options: ServerOptions): Promise<ExtensionServer> {
  const { files, log } = options;
  const mutual = files.clientAuthority === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
  const server = createSecureServer({ allowHTTP1: true, ...mutual, ...(await readCertificate(files)) });
  const sockets = new Set<Socket>();
  server.on('secureConnection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response) => {
    serve(options, request, response).catch((error: unknown) => log.warn('a call failed', { reason: error }));
  });
  const address = await listen(server, options.address);
  const following = followCertificate(files, (renewed) => server.setSecureContext(renewed), log);
  return {
    address,
    async close() {
      following[Symbol.dispose]();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function serve(
  { answer, callTimeoutMs, log }: ServerOptions,
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Promise<void> {
  const [path = '', query] = request.url.split('?', 2);
  const hook = routeOf(request.method, path);
  if (typeof hook === 'number') {
    request.resume();
    response.writeHead(hook, hook === 405 ? { allow: 'POST' } : {}).end();
    return;
  }
  const body = await readBody(request);
  if (body === undefined) {
    response.writeHead(413).end();
    return;
  }
  const answered = await answer(hook, body, answerWithin(new URLSearchParams(query).get('timeout'), callTimeoutMs));
  log.info('answered', { hook, status: answered.status, message: answered.message });
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answered));
}

/** Milliseconds reserved for sending the answer before the caller gives up. */
const TRAVEL_MS = 500;
const LEAST_MS = 100;

/** Milliseconds in which to answer; `granted` is the value of `?timeout=`, a Go duration. */
export function answerWithin(granted: string | null, limitMs: number): number {
  const ms = (parseGoDuration(granted ?? '') ?? 0) / 1e6;
  return Math.max(LEAST_MS, (ms > 0 ? Math.min(ms, limitMs) : limitMs) - TRAVEL_MS);
}

/** Undefined if it is too long. */
async function readBody(request: Http2ServerRequest): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length <= MAX_BODY_BYTES) parts.push(part);
    else parts.length = 0;
  }
  return length > MAX_BODY_BYTES ? undefined : Buffer.concat(parts).toString('utf8');
}

async function listen(server: Http2SecureServer, address: string): Promise<AddressInfo> {
  const [, host = '', port] = /^(.*):(\d+)$/.exec(address) ?? [];
  if (port === undefined) throw new RefitError('REFIT_USAGE', `"${address}" is not an address; use host:port`);
  const bare = host.replace(/^\[|\]$/g, '');
  return await new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new RefitError('REFIT_USAGE', `cannot listen at ${address}: ${cause.message}`, {
          cause,
          hint: 'choose another address, or stop the process that uses it',
        }),
      ),
    );
    server.listen(Number(port), bare === '' ? undefined : bare, () => resolve(server.address() as AddressInfo));
  });
}
