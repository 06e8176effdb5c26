/** Owns asking one API server for `/readyz`, with the credentials of another connection to the same control plane. */
import type { ClusterConfig } from '../config/cluster-config.ts';
import { createClient } from './http-client.ts';

export interface ReadyzOptions {
  /** The port on every host; the port of the connection's own server where absent. */
  readonly port?: number | undefined;
  /** Milliseconds until a silent server counts as not ready. */
  readonly timeoutMs: number;
  readonly abort?: AbortSignal | undefined;
}

/**
 * Resolves with the HTTP status; rejects where `host` is no address or does not answer. Every call connects anew: that an
 * old connection still lives says nothing about whether the server would accept a client now.
 */
export async function askReadyz(config: ClusterConfig, host: string, options: ReadyzOptions): Promise<number> {
  const client = createClient({ ...config, server: originOf(config, host, options) });
  try {
    return (await client.raw('/readyz', { deadlineMs: options.timeoutMs, abort: options.abort })).status;
  } finally {
    client.close();
  }
}

/** Parsed as a whole: the setters of a URL ignore what they cannot take, and the connection's own server would answer. */
function originOf({ server }: ClusterConfig, host: string, options: ReadyzOptions): string {
  const { protocol, port } = new URL(server);
  const url = `${protocol}//${host.includes(':') ? `[${host}]` : host}:${options.port ?? port}`;
  if (/^[\w.:-]+$/.test(host) && URL.canParse(url)) return new URL(url).origin;
  throw new Error(`"${host}" is no address of an API server`);
}
