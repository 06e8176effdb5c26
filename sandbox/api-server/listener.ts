/** The listening sockets: one server for each address, all on one port. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Milliseconds that an idle connection is kept: longer than clients keep theirs, so that they close first. */
const IDLE = 120_000;

/** Ports that are tried before giving up. */
const ATTEMPTS = 10;

/** Open sockets, until they are closed. */
export interface Listening {
  readonly urls: readonly string[];
  /** Ends all connections, open watches too. */
  close(): Promise<void>;
}

/** Every address gets the port that the first one got; where another program holds it there, another port is tried. */
export async function listen(
  addresses: readonly string[],
  listener: RequestListener,
): Promise<Listening> {
  for (let attempt = 1; ; attempt++) {
    const servers: Server[] = [];
    const close = async (): Promise<void> => {
      await Promise.all(servers.map(closeServer));
    };
    try {
      for (const address of addresses)
        servers.push(await listenOn(address, portOf(servers[0]), listener));
      return { urls: addresses.map((address) => `http://${address}:${portOf(servers[0])}`), close };
    } catch (error) {
      await close();
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

const portOf = (server: Server | undefined): number =>
  (server?.address() as AddressInfo | undefined)?.port ?? 0;

async function listenOn(address: string, port: number, listener: RequestListener): Promise<Server> {
  const server = createServer({ keepAliveTimeout: IDLE, requestTimeout: 0 }, listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, address, resolve);
  });
  return server;
}

async function closeServer(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
