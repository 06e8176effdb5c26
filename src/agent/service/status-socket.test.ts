/** Tests the client of the status socket against real sockets that answer correctly, wrongly or not at all. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { RequestListener, Server } from 'node:http';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { askStatus } from './status-socket.ts';

let directory: string;
let server: Server | undefined;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-socket-'));
});
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
  await rm(directory, { recursive: true });
});

async function serve(listener: RequestListener): Promise<string> {
  const path = join(directory, 'status.sock');
  server = createServer(listener).listen(path);
  await once(server, 'listening');
  return path;
}

test('version, PID and part in the cluster are read as k0s writes them', async () => {
  const asked: unknown[] = [];
  const path = await serve(({ method, url, headers, httpVersion }, response) => {
    asked.push({ method, url, host: headers.host, httpVersion });
    response.end(
      JSON.stringify({ Version: 'v1.36.3+k0s.0', Pid: 42, Role: 'worker', Workloads: true }),
    );
  });
  const expected = { version: 'v1.36.3+k0s.0', pid: 42, role: 'worker', workloads: true };
  expect(await askStatus(path, 10_000)).toEqual(expected);
  expect(asked).toEqual([{ method: 'GET', url: '/status', host: 'localhost', httpVersion: '1.1' }]);
});

test.each<[string, object, object]>([
  [
    'a controller',
    { Role: 'controller', Workloads: false },
    { role: 'controller', workloads: false },
  ],
  ['a single node', { Workloads: false, SingleNode: true }, { workloads: true }],
  ['nothing more', {}, {}],
  [
    'nothing of a wrong type',
    { Role: 1, Workloads: 'yes', ClusterConfig: { spec: { api: { address: 5 } } } },
    {},
  ],
  ['no configuration', { ClusterConfig: null }, {}],
  ['an empty configuration', { ClusterConfig: { spec: { api: {} } } }, {}],
  [
    'a configuration',
    { ClusterConfig: { spec: { api: { address: '10.0.0.1' } } } },
    { apiAddress: '10.0.0.1' },
  ],
])('an answer of k0s is read with version and PID, and with %s', async (_name, answer, more) => {
  const path = await serve((_request, response) =>
    response.end(JSON.stringify({ Version: 'v1', Pid: 1, ...answer })),
  );
  expect(await askStatus(path, 10_000)).toEqual({ version: 'v1', pid: 1, ...more });
});

test.each<[string, RequestListener, string]>([
  ['an error', (_request, response) => response.writeHead(500).end(), 'answered 500'],
  ['no JSON', (_request, response) => response.end('hello'), 'JSON'],
  ['no version', (_request, response) => response.end('{"Pid":1}'), 'without Version and Pid'],
  [
    'a PID that is none',
    (_request, response) => response.end('{"Version":"v1","Pid":"1"}'),
    'without Version and Pid',
  ],
  ['no end', (_request, response) => response.end(Buffer.alloc(3_000_000, 'x')), 'too long'],
  ['a broken connection', ({ socket }) => socket.destroy(), 'socket hang up'],
  ['no-answer', () => undefined, 'aborted'],
])('a status socket that sends %s has no answer', async (name, listener, message) => {
  await expect(
    askStatus(await serve(listener), name === 'no-answer' ? 50 : 10_000),
  ).rejects.toThrow(message);
});

test('no socket is no answer', async () => {
  await expect(askStatus(join(directory, 'none.sock'), 10_000)).rejects.toThrow('ENOENT');
});
