/**
 * Milliseconds between two questions of an idle agent to its service. On a worker, each answer
 * costs the API server a request.
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
  // Node.js runs the file `worker`, so the command line is that of a k0s worker.
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

/**
 * Changes the object of the agent ten times. After each change the agent checks again what it
 * reports about itself.
 */
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

test("on a controller each time: it may be started with k0s's own agent", async () => {
  await changeTenTimes('--object', 'controlnode');
  expect(requests).toBeGreaterThanOrEqual(10);
});
