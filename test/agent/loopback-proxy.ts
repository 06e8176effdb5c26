/**
 * A proxy on loopback that knows a few names. It forwards plain requests and tunnels to them, and records its requests.
 */
import { once } from 'node:events';
import {
  createServer,
  request as forward,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Identity } from './https-mirror.ts';

export interface LoopbackProxy extends AsyncDisposable {
  /** `127.0.0.1:<port>`. */
  readonly host: string;
  /** Method and target of each request, in order. */
  readonly asked: readonly string[];
  /** The header `proxy-authorization` of each request, in order. */
  readonly credentials: readonly (string | undefined)[];
  /** Tunnels that are open now. */
  open(): number;
}

export interface ProxyTraits {
  /** Maps `host:port` to a port of 127.0.0.1. */
  readonly names: Readonly<Record<string, number>>;
  /** Answers each CONNECT with this status. With 'no-answer', never answers. */
  readonly refuses?: number | 'no-answer';
  /** The certificate and the key of the proxy. If they are set, the proxy uses TLS. */
  readonly identity?: Identity;
}

export async function startLoopbackProxy({
  names,
  refuses,
  identity,
}: ProxyTraits): Promise<LoopbackProxy> {
  const asked = [] as string[];
  const credentials = [] as (string | undefined)[];
  const sockets = new Set<Socket>();
  const note = ({ method, url, headers }: IncomingMessage): void => {
    asked.push(`${method} ${url}`);
    credentials.push(headers['proxy-authorization']);
  };
  const answer = (incoming: IncomingMessage, response: ServerResponse): void => {
    note(incoming);
    pass(incoming, response, names);
  };
  const server = identity === undefined ? createServer(answer) : createTlsServer(identity, answer);
  server.on('connect', (incoming, socket: Socket) => {
    note(incoming);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    if (refuses === 'no-answer') {
      socket.resume().on('end', () => socket.end());
      return;
    }
    const port = names[incoming.url ?? ''];
    if (refuses !== undefined || port === undefined) {
      socket.end(`HTTP/1.1 ${refuses ?? 502} No\r\n\r\n`);
      return;
    }
    const target = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 Connected\r\n\r\n'));
    target.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.on('close', () => target.destroy());
    socket.pipe(target).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    credentials,
    open: () => sockets.size,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function pass(
  { url = '', headers }: IncomingMessage,
  response: ServerResponse,
  names: ProxyTraits['names'],
): void {
  const { hostname, port, pathname, search } = new URL(url);
  const own = names[`${hostname}:${port || '80'}`];
  if (own === undefined) {
    response.writeHead(502).end();
    return;
  }
  forward({ host: '127.0.0.1', port: own, path: pathname + search, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  }).end();
}
