/** Chooses free ports on loopback. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * The range is below Linux's range for outgoing connections. Otherwise a client could occupy the port of a server that
 * restarts. Even a client that tries to connect to this server could do so.
 */
const FIRST = 20_000;
const LAST = 32_000;

/**
 * The ports that this process has already returned. Several control planes start at once, and each of them needs some
 * time until it listens on its port.
 */
const given = new Set<number>();

/**
 * Each process chooses from a slice of its own first. A port is free until its server listens, so another process could
 * choose the same port in the meantime.
 */
const SLICE = 100;
const OWN = FIRST + (process.pid % Math.floor((LAST - FIRST) / SLICE)) * SLICE;

/**
 * Returns a port that is free now. Each call returns a different port. The port is random, so that two processes rarely
 * get the same port.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = given.size < SLICE ? randomInt(OWN, OWN + SLICE) : randomInt(FIRST, LAST);
    if (given.has(port)) continue;
    given.add(port);
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
