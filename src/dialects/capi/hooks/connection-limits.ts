/** Keeps callers of the hooks from holding the server: with silent, slow or many connections and requests. */
import type { EventEmitter } from 'node:events';
import type { Http2SecureServer, Http2ServerRequest } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { LogFields, Logger } from '../../../util/log.ts';

export type Limits = Readonly<typeof DEFAULT_LIMITS>;

export const DEFAULT_LIMITS = {
  /** Milliseconds for a handshake, for the head of a request, and for its body. */
  patienceMs: 10_000,
  /** Connections whose caller has shown its certificate; beyond it a new one is closed. */
  connections: 128,
  /** Connections in their handshake; beyond it the oldest is closed. */
  handshakes: 128,
  requests: 64,
  /** As in other servers for these hooks. */
  bodyBytes: 20 * 1024 * 1024,
  /** Of all bodies that are being read or answered. */
  bytesInFlight: 128 * 1024 * 1024,
};

const LOG_EVERY_MS = 1000;

/** Applies the limits to every connection of `server`; returns what closes them all. `refusalOf` says why a caller may not call. */
export function limitConnections(
  server: Http2SecureServer,
  limits: Limits,
  log: Logger,
  refusalOf: (socket: TLSSocket) => string | undefined,
): () => void {
  const { connections, handshakes, patienceMs } = limits;
  const pending = new Map<string, Socket>();
  const secured = new Map<string, ReturnType<typeof secure>>();
  const refused = occasionally((fields) => log.warn('a connection was refused', fields));
  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket);
    pending.set(key, socket);
    socket.once('close', () => pending.delete(key));
    const [oldest] = pending.values();
    if (pending.size > handshakes) oldest?.destroy();
  });
  server.on('tlsClientError', (error: Error, socket: Socket) =>
    refused({ from: socket.remoteAddress, reason: error.message }),
  );
  server.on('secureConnection', (socket: TLSSocket) => {
    const key = keyOf(socket);
    pending.delete(key);
    const isFull = secured.size >= connections;
    const reason = isFull ? `${connections} connections are open` : refusalOf(socket);
    if (reason !== undefined) {
      refused({ from: socket.remoteAddress, reason });
      socket.destroy();
      return;
    }
    secured.set(key, secure(socket, patienceMs));
    socket.once('close', () => {
      secured.get(key)?.stopWaiting();
      secured.delete(key);
    });
  });
  server.on('request', (request: Http2ServerRequest, response: EventEmitter) =>
    secured.get(keyOf(request.socket))?.serve(response),
  );
  return () => {
    for (const socket of pending.values()) socket.destroy();
    for (const { socket } of secured.values()) socket.destroy();
  };
}

/** Closed when no request has begun for the time: also when the head of one never ends. */
function secure(socket: TLSSocket, patienceMs: number) {
  const wait = (ms: number): NodeJS.Timeout => setTimeout(() => socket.destroy(), ms);
  let timer = wait(patienceMs);
  let open = 0;
  const stopWaiting = (): void => clearTimeout(timer);
  return {
    socket,
    stopWaiting,
    serve(response: EventEmitter): void {
      open += 1;
      stopWaiting();
      response.once('close', () => {
        open -= 1;
        // Managers use a connection again.
        if (open === 0 && !socket.destroyed) timer = wait(patienceMs * 6);
      });
    },
  };
}

function keyOf({
  remoteAddress,
  remotePort,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Calls at most once a second, with how many calls were left out before it. */
function occasionally(call: (fields: LogFields) => void): (fields: LogFields) => void {
  let last = Number.NEGATIVE_INFINITY;
  let leftOut = 0;
  return (fields) => {
    const now = performance.now();
    if (now - last < LOG_EVERY_MS) {
      leftOut += 1;
      return;
    }
    call(leftOut === 0 ? fields : { ...fields, alsoRefused: leftOut });
    last = now;
    leftOut = 0;
  };
}
