/** Owns asking one API server for `/readyz`, with the credentials of another connection to the same control plane. */
import type { ClusterConfig } from './cluster-config.ts';
import { createClient } from './http-client.ts';

export interface ReadyzOptions {
  /** The port on every host; the port of the connection's own server where absent. */
  readonly port?: number | undefined;
  /** Milliseconds until a silent server counts as not ready. */
  readonly timeoutMs: number;
}

/**
 * Resolves with the HTTP status. Every call connects anew: that an old connection still lives says nothing about whether
 * the server would accept a client now.
 */
export async function askReadyz(config: ClusterConfig, host: string, options: ReadyzOptions): Promise<number> {
  const server = new URL(config.server);
  server.hostname = host.includes(':') ? `[${host}]` : host;
  if (options.port !== undefined) server.port = String(options.port);
  const client = createClient({ ...config, server: server.origin });
  try {
    return (await client.raw('/readyz', { deadlineMs: options.timeoutMs })).status;
  } finally {
    client.close();
  }
}
