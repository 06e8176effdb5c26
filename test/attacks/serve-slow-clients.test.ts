/**
 * Tests that the memory of the update server stays small if clients request different parts of a large file and read
 * nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test, vi } from 'vitest';
import { REFIT } from '../../sandbox/refit.ts';

const MIB = 1024 * 1024;
const CLIENTS = 60;
const STEP = 8 * MIB;
const HASH = 'ab'.repeat(32);

/** Returns a directory with one sparse file, which is larger than the buffers of the kernel. */
async function release(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-serve-'));
  await mkdir(join(directory, 'files'));
  const size = CLIENTS * STEP + 64 * MIB;
  await writeFile(join(directory, 'files', HASH), '');
  await truncate(join(directory, 'files', HASH), size);
  const releases = {
    'v1.36.3+k0s.0': [{ platform: 'linux-amd64', kind: 'k0s', sha256: HASH, size }],
  };
  await writeFile(join(directory, 'catalog.json'), JSON.stringify({ releases, channels: {} }));
  return directory;
}

async function portOf(server: ChildProcess): Promise<number> {
  if (server.stderr === null) throw new Error('no log');
  for await (const line of createInterface(server.stderr)) {
    const { msg, port } = JSON.parse(line) as { msg: string; port?: number };
    if (msg === 'serving' && port !== undefined) return port;
  }
  throw new Error('the server ended');
}

/** Resolves once the first bytes have arrived. Reads no further bytes. */
async function ask(port: number, from: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET /files/${HASH}/k0s HTTP/1.1\r\nHost: x\r\nRange: bytes=${from}-\r\n\r\n`);
  await once(socket, 'readable');
  return socket;
}

async function memoryOf({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
}

test('a client that does not read holds little', async () => {
  await using things = new AsyncDisposableStack();
  const directory = await release();
  things.defer(async () => await rm(directory, { recursive: true }));
  const server = spawn(process.execPath, [REFIT, 'serve', directory, '--address', '127.0.0.1:0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  things.defer(async () => {
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  });
  const port = await portOf(server);
  server.stderr?.resume();
  const before = await memoryOf(server);
  for (let each = 0; each < CLIENTS; each++) {
    const socket = await ask(port, each * STEP);
    things.defer(() => void socket.destroy());
  }
  // The server may use its cache of 128 MiB completely, and some memory for each client in addition.
  let last = 0;
  await vi.waitFor(
    async () => {
      const now = await memoryOf(server);
      const isSteady = Math.abs(now - last) < MIB;
      last = now;
      expect(isSteady).toBe(true);
    },
    { timeout: 60_000, interval: 1000 },
  );
  // Measurements showed 0.6 to 1.3 MiB for each client, with garbage. A server that reads ahead without a limit would
  // need STEP or more for each client.
  expect(last - before).toBeLessThan(128 * MIB + (CLIENTS * STEP) / 2);
});
