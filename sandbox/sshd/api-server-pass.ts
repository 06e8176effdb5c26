/** Stands in for the API server of one control-plane host. It forwards connections to the real API server. */
import { existsSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { StandInHost } from './stand-in-host.ts';

/** Listens at the host's address. Refuses connections while the manifest of the host's API server is missing. */
export async function passThrough(
  host: StandInHost,
  address: string,
  port: number,
  upstream: URL,
): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((incoming) => {
    if (!existsSync(join(host.root, 'etc/kubernetes/manifests/kube-apiserver.yaml')))
      return incoming.destroy();
    const outgoing = connect(Number(upstream.port), upstream.hostname);
    for (const [from, to] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(from);
      from.on('error', () => to.destroy()).on('close', () => sockets.delete(from));
      from.pipe(to);
    }
    return undefined;
  });
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(port, address, resolve),
  );
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
