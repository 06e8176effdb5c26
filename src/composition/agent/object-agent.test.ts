/**
 * Tests how often an idle agent sends a status request to its service. On a worker, each answer causes one request to
 * the API server.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { writeWorkerProfile } from '../../../sandbox/hosts/host.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { ChangingNode } from '../../../test/support/doubles/agent/changing-node.ts';
import type { SignalObject } from '../../agent/object/signal-object.ts';
import { parseAgentOptions } from '../../agent/options.ts';
import { pathsIn } from '../../agent/state/state-directory.ts';
import type { KeptFacts } from '../../signal/agent-presence.ts';
import { silentLogger } from '../../util/log.ts';
import { type AgentHost, announcer } from './object-agent.ts';

let directory: string;
let service: ChildProcess;
let server: Server;
let requests: number;
let place: { readonly statusSocket: string; readonly dataDirectory: string };
beforeEach(async () => {
  requests = 0;
  directory = await mkdtemp(join(tmpdir(), 'refit-announce-'));
  place = { statusSocket: join(directory, 'status.sock'), dataDirectory: directory };
  const binary = join(directory, 'k0s');
  await copyFile(process.execPath, binary);
  // Node.js runs the file `worker`, so the command line looks like the command line of a k0s worker.
  await writeFile(join(directory, 'worker'), 'console.log("up"); process.stdin.resume()');
  service = spawn(binary, ['worker'], { stdio: ['pipe', 'pipe', 'inherit'], cwd: directory });
  await once(service.stdout as NodeJS.EventEmitter, 'data');
  await writeWorkerProfile(directory, false);
  server = createServer((_request, response) => {
    requests++;
    response.end(JSON.stringify({ Version: 'v1', Pid: service.pid }));
  });
  await once(server.listen(place.statusSocket), 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  service.kill('SIGKILL');
  await once(service, 'exit');
  await rm(directory, { recursive: true });
});

/** Changes the object of the agent ten times. After each change, the agent checks again what it reports about itself. */
async function changeTenTimes(...flags: string[]): Promise<readonly unknown[]> {
  const object = new ChangingNode();
  const patch = vi.fn(async () => await Promise.resolve());
  const tools = { clock: new FakeClock(), random: () => 0.5, log: silentLogger };
  const options = parseAgentOptions(flags);
  const parts = {
    ...tools,
    options,
    client: { patch },
    places: { current: place },
    paths: pathsIn(directory),
    version: '1',
    userAgent: 'refit',
  };
  const stop = new AbortController();
  const host = parts as unknown as AgentHost;
  const done = announcer(host, object as unknown as SignalObject).keep(stop.signal);
  for (let change = 1; change <= 10; change++) {
    object.show({ metadata: { name: 'n' } });
    await vi.waitFor(() => expect(patch).toHaveBeenCalledTimes(change), 60_000);
  }
  stop.abort();
  await done;
  return patch.mock.calls;
}

test('on a worker twice: for the path of its binary, and whether the process runs its own agent', async () => {
  await changeTenTimes();
  expect(requests).toBe(2);
});

test('an agent that excludes its host from plans says so, and another one does not', async () => {
  const excluding = await changeTenTimes('--exclude-from-plans', 'worker');
  expect(JSON.stringify(excluding)).toContain(String.raw`\"excluded\":true`);
  const other = await changeTenTimes('--exclude-from-plans', 'controller');
  expect(JSON.stringify(other)).not.toContain('excluded');
});

test('the announcement after a report never has older facts than the report', async () => {
  const object = new ChangingNode();
  const patch = vi.fn(async (...args: unknown[]) => await Promise.resolve(args));
  const facts = { version: 'v1.36.1+k0s.0', sha256: 'a'.repeat(64) };
  const reads: PromiseWithResolvers<KeptFacts>[] = [];
  const kept = {
    tend: async () => await Promise.resolve(),
    facts: async () => {
      const read = Promise.withResolvers<KeptFacts>();
      reads.push(read);
      return await read.promise;
    },
  };
  const clock = new FakeClock();
  const host = {
    clock,
    random: () => 0.5,
    log: silentLogger,
    options: parseAgentOptions([]),
    client: { patch },
    places: { current: place },
    paths: pathsIn(directory),
    version: '1',
    userAgent: 'refit',
    kept,
  } as unknown as AgentHost;
  const stop = new AbortController();
  const announcement = announcer(host, object as unknown as SignalObject);
  const done = announcement.keep(stop.signal);
  const readTimes = async (count: number): Promise<void> =>
    await vi.waitFor(() => expect(reads).toHaveLength(count), 60_000);
  object.show({ metadata: { name: 'n' } });
  await readTimes(1);
  reads[0]?.resolve(facts);
  await vi.waitFor(() => expect(patch).toHaveBeenCalledTimes(1), 60_000);
  await clock.advance(60_000);
  await readTimes(2);
  const report = announcement.current();
  await readTimes(3);
  reads[2]?.resolve({ ...facts, until: '2026-11-20T10:00:00Z' });
  const annotations = await report;
  reads[1]?.resolve(facts);
  object.show({ metadata: { name: 'n', annotations } });
  await readTimes(4);
  reads[3]?.resolve({ ...facts, gone: 'Expired' });
  await vi.waitFor(() => expect(patch).toHaveBeenCalledTimes(2), 60_000);
  expect(JSON.stringify(patch.mock.calls[1])).toContain('Expired');
  stop.abort();
  await done;
});

test("on a controller each time: it may be started with k0s's own agent", async () => {
  await changeTenTimes('--object', 'controlnode');
  expect(requests).toBeGreaterThanOrEqual(10);
});
