/** Serves /healthz (the process runs), /readyz (its caches are synced) and /metrics. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { messageOf } from '../util/errors.ts';
import { closeOnAbort, listen } from '../util/listen.ts';
import type { Runnable } from './manager.ts';
import type { Metrics } from './metrics.ts';

export interface HealthOptions {
  /** `host:port`. Port 0 selects a free port. */
  readonly address: string;
  /**
   * Returns the names of everything that is not ready yet. Without this function, the process is
   * always ready.
   */
  readonly waitingFor?: () => readonly string[];
  readonly metrics: Metrics;
}

/**
 * The time limits of a connection, in milliseconds. Probes and scrapes are short, and slow clients must not keep the server from answering
 * probes.
 */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 10_000,
};
const MAX_CONNECTIONS = 64;
/**
 * The most open connections at any moment. It is far below the number of files that a process may
 * open.
 */
const MOST_AT_ONCE = 256;
/**
 * The time in milliseconds until the oldest connection is closed if too many connections are open. A probe that arrives
 * then is answered within this time. The kubelet restarts a process that refuses its probe.
 */
const PROBE_MS = 250;

/**
 * Listens at once, before caches are synced, and serves until `run` is aborted. It rejects with
 * REFIT_USAGE if it cannot listen.
 */
export async function createHealthServer(
  options: HealthOptions,
): Promise<Runnable & { readonly port: number }> {
  const server = createServer(LIMITS, (request, response) => {
    answer(request, options, response).catch((error: unknown) =>
      respond(response, 500, `${messageOf(error)}\n`),
    );
  });
  const open = new Set<Socket>();
  let cut: NodeJS.Timeout | undefined;
  const closeOldest = (): void => {
    clearTimeout(cut);
    cut = undefined;
    for (const socket of [...open].slice(0, -MAX_CONNECTIONS)) socket.destroy();
  };
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    if (open.size > MOST_AT_ONCE) closeOldest();
    if (open.size > MAX_CONNECTIONS) cut ??= setTimeout(closeOldest, PROBE_MS).unref();
  });
  const { port } = await listen(server, options.address);
  return { name: 'health', port, run: async (abort) => await closeOnAbort(server, abort) };
}

async function answer(
  { url = '/', headers }: IncomingMessage,
  { waitingFor, metrics }: HealthOptions,
  response: ServerResponse,
): Promise<void> {
  const path = url.split('?')[0];
  const missing = waitingFor?.() ?? [];
  if (path === '/healthz') return respond(response, 200, 'ok\n');
  if (path === '/readyz' && missing.length === 0) return respond(response, 200, 'ok\n');
  if (path === '/readyz') return respond(response, 503, `waiting for: ${missing.join(', ')}\n`);
  if (path !== '/metrics') return respond(response, 404, 'not found\n');
  const { body, contentType } = await metrics.expose(headers.accept);
  respond(response, 200, body, contentType);
}

function respond(
  response: ServerResponse,
  code: number,
  body: string,
  contentType = 'text/plain',
): void {
  response.writeHead(code, { 'content-type': contentType }).end(body);
}
