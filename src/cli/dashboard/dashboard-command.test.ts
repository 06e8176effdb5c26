/**
 * Shows what `refit dashboard` prints if it cannot start: one sentence that names the cause. It also shows which name of
 * the cluster the page gets.
 */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../../sandbox/cluster/plane.ts';
import { MODULES } from '../../dialects/modules.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { describeProblem } from '../../kube/status-error.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { systemClock } from '../../util/clock.ts';
import { runDashboard } from './dashboard-command.ts';
import type { DashboardState } from './state.ts';

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refit-dashboard-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  return folder;
}

/** Returns the text of the error that the user gets. Rejects if the command starts to serve. */
async function refusalOf(flags: { kubeconfig: string; port?: number }): Promise<string> {
  const abort = new AbortController();
  const lines: string[] = [];
  const write = (line: string): void => {
    lines.push(line);
    abort.abort(new Error('it serves'));
  };
  const size = () => ({ columns: 80, rows: 24 });
  const output = { write, size, isTerminal: false, hasColours: false };
  const parts = { modules: MODULES, clock: systemClock, output, abort: abort.signal };
  const ended = runDashboard({ port: 0, open: false, ...flags }, parts);
  const refusal = await ended.then(
    () => 'none',
    (error: unknown) => describeProblem(error).line,
  );
  expect(lines).toEqual([]);
  return refusal;
}

async function listening() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { server, port: address.port };
}

test('the dashboard refuses a kubeconfig that does not exist in one line that names it', async () => {
  const kubeconfig = join(await temporaryFolder(), 'nosuch');
  expect(await refusalOf({ kubeconfig })).toMatch(/^REFIT_\w+: .*nosuch.*$/);
});

test('the dashboard refuses a file that is no kubeconfig in one line that names it', async () => {
  const kubeconfig = join(await temporaryFolder(), 'broken');
  await writeFile(kubeconfig, 'clusters: 7\n');
  expect(await refusalOf({ kubeconfig })).toMatch(/^REFIT_\w+: .*broken.*$/);
});

test('the dashboard says in one line that the API server does not answer', async () => {
  const folder = await temporaryFolder();
  const plane = await startSandboxPlane(folder);
  const kubeconfig = await plane.kubeconfig('admin');
  await plane.stop();
  expect(await refusalOf({ kubeconfig })).toMatch(
    /^REFIT_UNREACHABLE: cannot reach http:\/\/127\.0\.0\.1:\d+: .*$/,
  );
});

test('the dashboard says in one line that its port is in use', async () => {
  const plane = await startSandboxPlane(await temporaryFolder());
  onTestFinished(async () => await plane.stop());
  const kubeconfig = await plane.kubeconfig('admin');
  using client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  const { server, port } = await listening();
  onTestFinished(() => void server.close());
  expect(await refusalOf({ kubeconfig, port })).toMatch(
    new RegExp(`^REFIT_USAGE: cannot listen at 127\\.0\\.0\\.1:${port}: .*address already in use`),
  );
});

/** Runs the command until it has sent a state, and returns the name of the cluster in this state. */
async function clusterShown(flags: { kubeconfig: string; clusterName?: string }): Promise<unknown> {
  const abort = new AbortController();
  const printed = Promise.withResolvers<string>();
  const write = (text: string): void => printed.resolve(/http:\S+/.exec(text)?.[0] ?? '');
  const size = () => ({ columns: 80, rows: 24 });
  const output = { write, size, isTerminal: false, hasColours: false };
  const parts = { modules: MODULES, clock: systemClock, output, abort: abort.signal };
  const ended = runDashboard({ port: 0, open: false, ...flags }, parts);
  ended.catch((error: unknown) => printed.reject(error));
  const opened = await fetch(await printed.promise, { redirect: 'manual' });
  const [cookie = ''] = opened.headers.get('set-cookie')?.split(';') ?? [];
  const page = new URL(opened.headers.get('location') ?? '', await printed.promise);
  const ask = async () => await fetch(new URL('api/state', page), { headers: { cookie } });
  await expect.poll(async () => (await ask()).status).toBe(200);
  const { cluster } = (await (await ask()).json()) as DashboardState;
  abort.abort(new Error('the test is over'));
  await ended;
  return cluster;
}

test('the page names the cluster as the context of the kubeconfig does, or as --cluster-name says', async () => {
  const plane = await startSandboxPlane(await temporaryFolder());
  onTestFinished(async () => await plane.stop());
  const kubeconfig = await plane.kubeconfig('admin');
  const config = await loadClusterConfig({ path: kubeconfig });
  using client = createClient(config, { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  expect(await clusterShown({ kubeconfig })).toBe(config.context);
  expect(config.context).toMatch(/./);
  expect(await clusterShown({ kubeconfig, clusterName: 'prod' })).toBe('prod');
});
