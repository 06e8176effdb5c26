/** Simulates faults of an API server: an HTTP proxy that answers like a server with faults, by rules. */
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import { type Agent, Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface Upstream {
  readonly url: string;
  /** The certificates and the key in PEM, for https. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string };
}

export type ApiFault =
  /** Answers with a Status with this code, without a request to the server. */
  | {
      readonly kind: 'answer';
      readonly code: number;
      readonly reason: string;
      readonly retryAfterSeconds?: number;
    }
  /** The server applies the request, but the connection of the client is reset before the answer. */
  | { readonly kind: 'applied-but-lost' }
  /** The answer announces that the server closes the connection after it. */
  | { readonly kind: 'last-answer' }
  /** Sends an ERROR event after `events` events of a watch. Then the watch ends. */
  | {
      readonly kind: 'error-event';
      readonly events: number;
      readonly code: number;
      readonly reason: string;
    };

export interface ApiFaultsOptions {
  readonly upstream: Upstream;
  /** Called for each request. If it returns undefined, the request goes to the server. */
  readonly fault: (request: { readonly method: string; readonly url: URL }) => ApiFault | undefined;
}

export interface ApiFaults {
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

export async function startApiFaults({ upstream, fault }: ApiFaultsOptions): Promise<ApiFaults> {
  const agent = upstream.tls && new HttpsAgent({ keepAlive: true, ...upstream.tls });
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', upstream.url);
    const chosen = fault({ method: request.method ?? 'GET', url });
    if (chosen?.kind === 'answer') return answer(response, chosen);
    forward({ request, response, url, agent, fault: chosen });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    stop: async () =>
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        agent?.destroy();
      }),
  };
}

function answer(response: ServerResponse, fault: ApiFault & { kind: 'answer' }): void {
  const { code, reason, retryAfterSeconds } = fault;
  const headers: OutgoingHttpHeaders = { 'content-type': 'application/json' };
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(retryAfterSeconds);
  response.writeHead(code, headers).end(JSON.stringify(status(code, reason)));
}

function status(code: number, reason: string): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message: `made up: ${reason}`,
    metadata: {},
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly agent: Agent | undefined;
  readonly fault: ApiFault | undefined;
}

function forward({ request, response, url, agent, fault }: Exchange): void {
  const send = agent ? httpsRequest : httpRequest;
  const headers = { ...request.headers, host: url.host };
  const outgoing = send(
    url,
    { method: request.method ?? 'GET', headers, ...(agent ? { agent } : {}) },
    (answered) => {
      if (fault?.kind === 'applied-but-lost') {
        answered.resume().once('end', () => response.socket?.resetAndDestroy());
        return;
      }
      const more = fault?.kind === 'last-answer' ? { connection: 'close' } : {};
      response.writeHead(answered.statusCode ?? 500, { ...answered.headers, ...more });
      response.flushHeaders();
      if (fault?.kind === 'error-event') return breakStream(answered, response, fault);
      answered.on('error', () => response.destroy());
      answered.pipe(response);
    },
  );
  outgoing.on('error', () => response.destroy());
  response.on('close', () => outgoing.destroy());
  request.pipe(outgoing);
}

function breakStream(
  answered: IncomingMessage,
  response: ServerResponse,
  fault: ApiFault & { kind: 'error-event' },
): void {
  let left = fault.events;
  let rest = '';
  answered.setEncoding('utf8');
  answered.on('data', (text: string) => {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.slice(0, Math.max(0, left))) response.write(`${line}\n`);
    left -= lines.length;
    if (left >= 0) return;
    answered.removeAllListeners('data').destroy();
    response.end(
      `${JSON.stringify({ type: 'ERROR', object: status(fault.code, fault.reason) })}\n`,
    );
  });
  answered.on('error', () => response.destroy());
  answered.on('end', () => response.end());
}
