/** The listening sockets: one server for each address, all on one port. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The time after which an idle connection is closed, in milliseconds. It is longer than the timeout of clients, so that
 * clients close first.
 */
const IDLE = 120_000;

/** The maximum number of ports that are tried. */
const ATTEMPTS = 10;

/** The open sockets of a server. */
export interface Listening {
  readonly urls: readonly string[];
  /** Ends all connections, also those of open watches. */
  close(): Promise<void>;
}

/**
 * Listens at every address on the port that the first address got. If another program uses that port at one of the
 * addresses, tries another port.
 */
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
