/**
 * Tests that the probes of the kubelet succeed while a pod takes all connections of the health port. Otherwise the
 * kubelet would restart the process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { REFIT } from '../../sandbox/refit.ts';
import { freePort } from '../../tools/controlplane/ports.ts';

const CONNECTIONS = 200;
const PROBES = 20;

/** Keeps as many incomplete requests open as possible. Replaces each connection that ends. */
class Flood implements Disposable {
  readonly #sockets = new Set<Socket>();
  #isOver = false;

  constructor(port: number) {
    for (let count = 0; count < CONNECTIONS; count++) this.#open(port);
  }

  get size(): number {
    return this.#sockets.size;
  }

  #open(port: number): void {
    const socket = connect(port, '127.0.0.1', () => {
      this.#sockets.add(socket);
      socket.write('GET /healthz HTTP/1.1\r\n');
    });
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (!this.#isOver) setTimeout(() => this.#open(port), 5);
    });
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const socket of this.#sockets) socket.destroy();
  }
}

test('probes get through', async () => {
  await using things = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-serve-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  await mkdir(join(directory, 'files'));
  await writeFile(join(directory, 'catalog.json'), JSON.stringify({ releases: {}, channels: {} }));
  const port = await freePort();
  const health = `http://127.0.0.1:${port}/healthz`;
  const args = [
    'serve',
    directory,
    '--address',
    '127.0.0.1:0',
    '--health-address',
    `127.0.0.1:${port}`,
  ];
  const server = spawn(process.execPath, [REFIT, ...args], { stdio: 'ignore' });
  things.defer(async () => {
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  });
  await vi.waitFor(async () => expect((await fetch(health)).status).toBe(200), { timeout: 60_000 });
  using flood = new Flood(port);
  await vi.waitFor(() => expect(flood.size).toBeGreaterThan(50), { timeout: 60_000 });
  let passed = 0;
  for (let probe = 0; probe < PROBES; probe++) {
    passed += await fetch(health, { headers: { connection: 'close' } }).then(
      ({ status }) => Number(status === 200),
      () => 0,
    );
  }
  // A kubelet tolerates two failed probes in a row.
  expect(passed).toBeGreaterThan(PROBES / 2);
});
