/** Tests, on real directories, that a watch reports a socket when it is created. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { watchForSocket } from './status-socket.ts';

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-socket-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  return directory;
}

async function listenAt(path: string): Promise<void> {
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
}

test('a watch tells of the socket that is waited for, and of no other', async () => {
  const directory = await newDirectory();
  const socket = join(directory, 'status.sock');
  const other = join(directory, 'other.sock');
  const told: string[] = [];
  const both = [socket, other].map(
    async (path) =>
      await new Promise<void>((resolve) => {
        const unwatch = watchForSocket(path, () => {
          told.push(path);
          resolve();
        });
        onTestFinished(() => unwatch?.());
      }),
  );

  await listenAt(other);
  await both[1];
  expect(told).not.toContain(socket);
  await listenAt(socket);
  await both[0];
});

test('no watch begins for a socket that exists, nor below a directory that does not exist', async () => {
  const directory = await newDirectory();
  await listenAt(join(directory, 'status.sock'));

  expect(watchForSocket(join(directory, 'status.sock'), () => undefined)).toBeUndefined();
  expect(watchForSocket(join(directory, 'run', 'status.sock'), () => undefined)).toBeUndefined();
});
