/** Owns the choice of free ports on loopback. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the range from which Linux takes the ports of outgoing connections: a server that restarts on its old port would
 * otherwise find it taken, even by a client that was trying to reach it.
 */
const FIRST = 20_000;
const LAST = 32_000;

/** A random port that nobody listens on at this moment; random, so that two calls hardly ever give the same. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
