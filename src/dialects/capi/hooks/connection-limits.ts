/**
 * Limits the resources of the server that callers of the hooks can use. It limits idle, slow and concurrent
 * connections, and concurrent requests.
 */
import type { EventEmitter } from 'node:events';
import type { Http2SecureServer, Http2ServerRequest } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { LogFields, Logger } from '../../../util/log.ts';

export type Limits = Readonly<typeof DEFAULT_LIMITS>;

export const DEFAULT_LIMITS = {
  /**
   * The most milliseconds for the handshake of a client. The same limit applies to the head of a request, and again to
   * its body.
   */
  patienceMs: 10_000,
  /** The limit for open connections after their handshake. A new connection beyond the limit is closed. */
  connections: 128,
  /** The limit for connections in their handshake. Beyond the limit, the oldest of them is closed. */
  handshakes: 128,
  requests: 64,
  /** The limit for the bytes of one body. Other servers of these hooks have the same limit. */
  bodyBytes: 20 * 1024 * 1024,
  /** The limit for the total bytes of all bodies that are being received or answered. */
  bytesInFlight: 128 * 1024 * 1024,
};

const LOG_EVERY_MS = 1000;

/**
 * Applies the limits to every connection of `server`. `refusalOf` returns why a caller may not call. The returned
 * function closes all connections.
 */
export function limitConnections(
  server: Http2SecureServer,
  limits: Limits,
  log: Logger,
  refusalOf: (socket: TLSSocket) => string | undefined,
): () => void {
  const { connections, handshakes, patienceMs } = limits;
  const pending = new Map<string, Socket>();
  const secured = new Map<string, SecuredConnection>();
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

/** A connection whose handshake has ended. */
interface SecuredConnection {
  readonly socket: TLSSocket;
  /** Ends the timer that would close the connection. */
  stopWaiting(): void;
  /** Counts a request until its response is closed. */
  serve(response: EventEmitter): void;
}

/**
 * Closes the connection if the server has not received the complete head of a first request after `patienceMs`
 * milliseconds.
 */
function secure(socket: TLSSocket, patienceMs: number): SecuredConnection {
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
        // The connection stays open for a while, because managers use it for further requests.
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

/**
 * Returns a function that calls `call` at most once a second. It adds the number of skipped calls to the fields of the
 * next call.
 */
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
