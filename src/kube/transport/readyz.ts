/** Asks a single API server, whatever server the connection names. */
import { systemClock } from '../../util/clock.ts';
import type { RequestOptions } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { credentialsOf } from '../config/credentials.ts';
import { createClient } from './http-client.ts';

const MOST_READYZ_BYTES = 1024 * 1024;

export interface ReadyzOptions extends Pick<RequestOptions, 'abort'> {
  /** Milliseconds that the request may take. */
  readonly deadlineMs: number;
  /** The port of every API server. The default is the port of the connection's own server. */
  readonly port?: number | undefined;
}

export interface PathQuestion extends ReadyzOptions {
  readonly path: string;
  /** The most bytes of the answer. */
  readonly mostBytes: number;
}

/**
 * Returns a function that asks the API server at an address whether it is ready, and returns the HTTP status. The
 * function rejects if no answer comes before the deadline.
 */
export function askerOf(config: ClusterConfig) {
  const ask = serverAskerOf(config);
  return async (host: string, options: ReadyzOptions): Promise<number> =>
    (await ask(host, { ...options, path: '/readyz', mostBytes: MOST_READYZ_BYTES })).status;
}

/**
 * Returns a function that requests a path of the API server at an address. The function rejects if no answer comes before
 * the deadline.
 */
export function serverAskerOf(config: ClusterConfig) {
  const { origin, protocol } = new URL(config.server);
  const isProven = protocol === 'https:' && config.insecureSkipTlsVerify !== true;
  const known = credentialsOf(config, systemClock);
  const unknown = credentialsOf({ ...config, user: {} }, systemClock);
  return async (host: string, { path, port, mostBytes, ...options }: PathQuestion) => {
    const server = originOf(config, host, port);
    // Addresses come from Nodes and EndpointSlices. A server gets our credentials only if a certificate proves its
    // identity.
    const credentials = isProven || server === origin ? known : unknown;
    // Each request uses a new connection, because an answer on an existing connection does not prove that the server
    // accepts new clients.
    using client = createClient({ ...config, server }, { credentials, mostBytes });
    return await client.raw(path, options);
  };
}

/**
 * Returns the origin at an address. It parses the whole URL. The setters of URL ignore invalid values, and the request
 * would go to the connection's own server.
 */
function originOf({ server }: ClusterConfig, host: string, port?: number): string {
  const own = new URL(server);
  const url = `${own.protocol}//${host.includes(':') ? `[${host}]` : host}:${port ?? own.port}`;
  if (/^[\w.:-]+$/.test(host) && URL.canParse(url)) return new URL(url).origin;
  throw new Error(`"${host}" is not the address of an API server`);
}
