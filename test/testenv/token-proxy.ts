/**
 * A small proxy that signs users in, as oauth2-proxy does: it adds a header with the token of the user to each request.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';

export const TOKEN_HEADER = 'X-Forwarded-Access-Token';
/** The address from which the proxy connects. It differs from the address of the other clients on this machine. */
export const PROXY_ADDRESS = '127.0.0.2';
/** The header that stands for the session of a user at the proxy. */
export const SESSION_HEADER = 'x-session';

export interface TokenProxy extends AsyncDisposable {
  readonly url: string;
  /** How many connections to the server the proxy has opened. */
  readonly connections: () => number;
}

/**
 * Starts a proxy in front of the HTTPS server at `upstream`. `tokens` has the token of each session. All requests share at most
 * `connections` connections to the server.
 */
export async function startTokenProxy(
  upstream: string,
  tokens: ReadonlyMap<string, string>,
  connections: number,
): Promise<TokenProxy> {
  const opened = new Set<unknown>();
  const agent = new Agent({
    keepAlive: true,
    maxSockets: connections,
    rejectUnauthorized: false,
    localAddress: PROXY_ADDRESS,
  });
  const forward = (asked: IncomingMessage, answer: ServerResponse): void => {
    const token = tokens.get(String(asked.headers[SESSION_HEADER]));
    const { [TOKEN_HEADER.toLowerCase()]: _forged, ...headers } = asked.headers;
    const sent = request(new URL(asked.url ?? '/', upstream), {
      agent,
      method: asked.method ?? 'GET',
      headers: { ...headers, ...(token !== undefined && { [TOKEN_HEADER]: token }) },
    });
    sent.on('socket', (socket) => opened.add(socket));
    sent.on('response', (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    });
    sent.on('error', () => answer.destroy());
    // If a page is closed, its request to the server ends as well.
    answer.on('close', () => sent.destroy());
    asked.pipe(sent);
  };
  const server = createServer(forward).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    connections: () => opened.size,
    async [Symbol.asyncDispose]() {
      agent.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
