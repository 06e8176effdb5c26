/** Chooses free ports on loopback. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below Linux's range for outgoing connections: otherwise a client could take the port of a server that restarts,
 * even by trying to reach it.
 */
const FIRST = 20_000;
const LAST = 32_000;

/** Several control planes start at once, and each needs a while until it listens on what it was given. */
const given = new Set<number>();

/** A port that is free now, and another one each time; random, so that two processes rarely get the same one. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
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
