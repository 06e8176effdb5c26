/** Proves what `refit controller` makes of a denial while the API server starts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startStubServer } from '../../test/faults/stub-server.ts';
import { runController } from './controller.ts';

test('an API server that denies everything at first ends the start, and does not turn updates off', async () => {
  await using server = await startStubServer((_, response) => {
    const denied = { code: 403, reason: 'Forbidden', message: 'denied' };
    const status = server.requests.length === 1 ? denied : { code: 404, reason: 'NotFound', message: 'not found' };
    response.writeHead(status.code, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', ...status }));
  });
  const directory = await mkdtemp(join(tmpdir(), 'refit-start-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const kubeconfig = join(directory, 'kubeconfig');
  const lists = {
    clusters: [{ name: 'stub', cluster: { server: server.config.server } }],
    contexts: [{ name: 'stub', context: { cluster: 'stub', user: 'stub' } }],
    users: [{ name: 'stub', user: {} }],
  };
  await writeFile(
    kubeconfig,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'stub', ...lists }),
  );
  const flags = { kubeconfig, leaseDuration: 15_000, targetDeadline: 60_000, logLevel: 'error' as const };
  await expect(runController(flags, new AbortController().signal)).rejects.toThrow('denied');
  expect(server.requests.map(({ url }) => url.replace(/\?.*/, ''))).toEqual([
    '/apis/autopilot.k0sproject.io/v1beta2/plans',
  ]);
});
