/** Asks one API server for `/readyz`, with the credentials of another connection to the same control plane. */
import type { ClusterConfig } from '../config/cluster-config.ts';
import { createClient } from './http-client.ts';

export interface ReadyzOptions {
  /** The port on every host; the port of the connection's own server by default. */
  readonly port?: number | undefined;
  /** Milliseconds until a silent server counts as not ready. */
  readonly timeoutMs: number;
  readonly abort?: AbortSignal | undefined;
}

/**
 * Resolves with the HTTP status; rejects when `host` is no address or does not answer. Each call opens a new connection: an
 * old one does not prove that the server still accepts clients.
 */
export async function askReadyz(config: ClusterConfig, host: string, options: ReadyzOptions): Promise<number> {
  const client = createClient({ ...config, server: originOf(config, host, options) });
  try {
    return (await client.raw('/readyz', { deadlineMs: options.timeoutMs, abort: options.abort })).status;
  } finally {
    client.close();
  }
}

/** Parses the whole URL: the setters of URL ignore bad values, and then the connection's own server would answer. */
function originOf({ server }: ClusterConfig, host: string, options: ReadyzOptions): string {
  const { protocol, port } = new URL(server);
  const url = `${protocol}//${host.includes(':') ? `[${host}]` : host}:${options.port ?? port}`;
  if (/^[\w.:-]+$/.test(host) && URL.canParse(url)) return new URL(url).origin;
  throw new Error(`"${host}" is not the address of an API server`);
}
