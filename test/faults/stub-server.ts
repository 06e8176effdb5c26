/** A server with scripted answers, for tests that look at single requests and connections. */
import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { ClusterConfig } from '../../src/kube/config/cluster-config.ts';

export interface SeenRequest {
  readonly method: string;
  /** The path with the query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values of the headers, alternating, as they were received. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
  readonly socket: Socket;
}

export interface StubServer extends AsyncDisposable {
  readonly config: ClusterConfig;
  readonly port: number;
  readonly requests: readonly SeenRequest[];
  /** The number of connections accepted so far. With TLS, only connections whose handshake succeeded are counted. */
  connections(): number;
}

export type Script = (request: SeenRequest, response: ServerResponse) => void;

/** Answers each request as `script` says, once its body is complete. */
export async function startStubServer(script: Script, tls?: ServerOptions): Promise<StubServer> {
  const requests: SeenRequest[] = [];
  const listener: RequestListener = (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const { method = '', url = '', headers, rawHeaders, socket } = incoming;
      const seen = {
        method,
        url,
        headers,
        rawHeaders,
        socket,
        body: Buffer.concat(chunks).toString(),
      };
      requests.push(seen);
      script(seen, response);
    });
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  let connections = 0;
  server.on(tls ? 'secureConnection' : 'connection', () => connections++);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  return {
    config: { server: url, user: {}, namespace: 'default', files: [] },
    port,
    requests,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}

/**
 * Answers /readyz as an API server does that is ready, and everything else as `script` says. Before a client believes that
 * a right is missing, it asks for /readyz. A script that refuses everything costs each client twenty seconds.
 */
export function whenReady(script: Script): Script {
  return (request, response) => {
    if (request.url === '/readyz') response.writeHead(200).end();
    else script(request, response);
  };
}

export function sendJson(
  response: ServerResponse,
  code: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(code, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(body));
}

export function sendStatus(
  response: ServerResponse,
  code: number,
  reason: string,
  headers: Record<string, string> = {},
): void {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message: `${reason} as scripted`,
  };
  sendJson(response, code, status, headers);
}
