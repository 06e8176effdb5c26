/**
 * Tests that a stand-in host behaves like a real host in everything that Refit uses: its file, its socket, its
 * supervisor.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Host, HostOptions } from './host.ts';
import { agentArguments, startHost } from './host.ts';
import { buildStandIn } from './stand-in.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';

let directory: string;
let things: AsyncDisposableStack;
beforeEach(async () => {
  things = new AsyncDisposableStack();
  directory = await mkdtemp(join(tmpdir(), "refit host's "));
  things.defer(async () => await rm(directory, { recursive: true }));
});
afterEach(async () => await things.disposeAsync());

async function start(options: Partial<HostOptions> = {}): Promise<Host> {
  const host = await startHost({
    name: 'w',
    role: 'worker',
    directory,
    version: OLD,
    restartDelayMs: 10,
    ...options,
  });
  things.defer(async () => await host.stop());
  return host;
}

async function statusOf({ statusSocket: socketPath }: Host): Promise<string> {
  return await new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: '/status', agent: false }, (response) => {
      response.setEncoding('utf8').on('data', resolve);
    });
    asked.once('error', reject).end();
  });
}

test('the file prints its version, from a path with blanks and quotes too', async () => {
  const path = join(directory, 'bin', 'k0s');
  await buildStandIn({ version: NEW, path, bytes: 10_000 });
  expect((await readFile(path)).length).toBe(10_000);
  expect(await promisify(execFile)(path, ['version'])).toEqual({ stdout: `${NEW}\n`, stderr: '' });
});

test.each([
  ['Perl', true],
  ['Node, where there is no Perl,', false],
])('in %s the file serves, padded too', async (_name, withPerl) => {
  for (const bytes of [0, 200_000]) {
    const host = await start();
    await buildStandIn({ version: NEW, path: `${host.binary}.new`, bytes }, withPerl);
    expect(await promisify(execFile)(`${host.binary}.new`, ['version'])).toEqual({
      stdout: `${NEW}\n`,
      stderr: '',
    });
    await rename(`${host.binary}.new`, host.binary);
    process.kill(host.pid ?? 0, 'SIGTERM');
    await vi.waitFor(async () => expect(await host.version()).toBe(NEW), { timeout: 150_000 });
    expect(JSON.parse(await statusOf(host))).toMatchObject({
      Version: NEW,
      Pid: host.pid,
      Workloads: true,
    });
    await host.stop();
  }
});

test('the status socket answers as that of k0s', async () => {
  const host = await start();
  expect(JSON.parse(await statusOf(host))).toMatchObject({
    Version: OLD,
    Pid: host.pid,
    Role: 'worker',
    SingleNode: false,
  });
});

test('the supervisor starts what is at the path after every end', async () => {
  const host = await start();
  for (const [starts, signal] of [
    [2, 'SIGTERM'],
    [3, 'SIGKILL'],
  ] as const) {
    await buildStandIn({ version: `v${starts}`, path: `${host.binary}.new` });
    await rename(`${host.binary}.new`, host.binary);
    process.kill(host.pid ?? 0, signal);
    await vi.waitFor(async () => expect(await host.version()).toBe(`v${starts}`), {
      timeout: 150_000,
    });
    expect(host.starts).toBe(starts);
  }
});

test('what cannot be executed is tried again and again', async () => {
  const host = await start();
  await writeFile(`${host.binary}.new`, '');
  await rename(`${host.binary}.new`, host.binary);
  process.kill(host.pid ?? 0, 'SIGTERM');
  await vi.waitFor(() => expect(host.starts).toBeGreaterThan(3), { timeout: 150_000 });
  await expect(host.version()).rejects.toThrow();
});

test('a power cut ends everything at once and for good', async () => {
  const host = await start();
  await host.powerOff();
  expect(host.pid).toBeUndefined();
  await expect(host.version()).rejects.toThrow();
  await host.stop();
  expect(host.starts).toBe(1);
});

test('a service that was stopped is started again when somebody says so', async () => {
  const host = await start();
  await host.stop();
  await expect(host.version()).rejects.toThrow();
  await host.resume();
  expect(await host.version()).toBe(OLD);
  expect(host.starts).toBe(2);
});

test.each([
  ['controller', [], { Workloads: false, SingleNode: false }, false],
  ['controller', ['--enable-worker'], { Workloads: true, SingleNode: false }, true],
  ['controller', ['--single'], { Workloads: false, SingleNode: true }, true],
  ['worker', [], { Workloads: true, SingleNode: false }, true],
] as const)('a %s with the flags %j says what it is', async (role, flags, says, runsPods) => {
  const host = await start({ role, flags });
  expect(JSON.parse(await statusOf(host))).toMatchObject(says);
  expect(host.runsPods).toBe(runsPods);
});

test.each(['crashes', 'hangs'] as const)('a build that %s never answers', async (broken) => {
  const host = await start({ broken });
  await vi.waitFor(() => expect(host.starts).toBeGreaterThan(broken === 'crashes' ? 2 : 0), {
    timeout: 150_000,
  });
  await expect(host.version()).rejects.toThrow();
});

test('a build of another version than it says', async () => {
  const host = await start({ broken: 'wrong-version' });
  await vi.waitFor(async () => expect(await host.version()).toBe(`${OLD}.wrong`), {
    timeout: 150_000,
  });
});

test("a controller passes everything to the cluster's API server, and nothing while it is down", async () => {
  const upstream = createServer((_request, response) => response.end('ok')).listen(0, '127.0.0.1');
  things.defer(() => void upstream.close());
  await vi.waitFor(() => expect(upstream.listening).toBe(true), 60_000);
  const { port } = upstream.address() as AddressInfo;
  const apiServer = { listen: `127.0.0.3:${port}`, upstream: `127.0.0.1:${port}` };
  const host = await start({ name: 'c', role: 'controller', apiServer, restartDelayMs: 60_000 });
  const readyz = async (): Promise<string> =>
    await (await fetch(`http://${apiServer.listen}/readyz`)).text();
  expect(await readyz()).toBe('ok');
  process.kill(host.pid ?? 0, 'SIGTERM');
  await vi.waitFor(() => expect(host.pid).toBeUndefined(), { timeout: 150_000 });
  await expect(readyz()).rejects.toThrow();
});

test('the agent beside it is told every place', async () => {
  const host = await start({ role: 'controller', name: 'c' });
  expect(agentArguments(host, '/kubeconfig').join(' ')).toBe(
    `--name c --object controlnode --kubeconfig /kubeconfig --status-socket ${host.statusSocket} ` +
      `--binary ${host.binary} --state-dir ${host.stateDirectory} --data-dir ${join(directory, 'data')} --run-dir ${join(directory, 'run')} --soak 0`,
  );
});
