/** Keeps two processes from building the same thing at once. */
import { createHash } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * Runs `work` while this process holds the lock `name`. Calls `onWait` once if another process holds it. The lock is a
 * Linux abstract socket. When its holder ends for any reason, the kernel releases the lock and closes the connections
 * of waiting processes. The lock only avoids duplicate work: results are renamed to their final path atomically.
 */
export async function withLock<T>(
  name: string,
  { onWait, abort }: { readonly onWait: () => void; readonly abort?: AbortSignal | undefined },
  work: () => Promise<T>,
): Promise<T> {
  // The name of an abstract socket has at most 107 bytes.
  const path = `\0refit-${createHash('sha256').update(name).digest('hex')}`;
  const waiting = new Set<Socket>();
  let server = await acquire(path, waiting);
  if (server === undefined) onWait();
  while (server === undefined) {
    abort?.throwIfAborted();
    await released(path, abort);
    abort?.throwIfAborted();
    server = await acquire(path, waiting);
  }
  try {
    return await work();
  } finally {
    server.close();
    for (const socket of waiting) socket.destroy();
  }
}

async function acquire(path: string, waiting: Set<Socket>): Promise<Server | undefined> {
  return await new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      waiting.add(socket);
      socket.on('error', () => socket.destroy());
    });
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen(path, () => resolve(server));
  });
}

/** Resolves when the lock is free or `abort` aborts. */
async function released(path: string, abort: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const socket = connect(path);
    const giveUp = (): void => void socket.destroy();
    abort?.addEventListener('abort', giveUp, { once: true });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      abort?.removeEventListener('abort', giveUp);
      resolve();
    });
    socket.resume();
  });
}
