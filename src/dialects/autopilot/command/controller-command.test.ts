/** Tests that `refit controller` retries if the API server denies requests while the controller starts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startStubServer } from '../../../../test/faults/stub-server.ts';
import { runController } from './controller-command.ts';

const FLAGS = { leaseDuration: 15_000, targetDeadline: 60_000, logLevel: 'error' as const };

test('an API server that denies everything at first ends the start, and does not turn updates off', async () => {
  await using server = await startStubServer(({ url }, response) => {
    if (url === '/readyz') return void response.writeHead(200).end();
    const denied = { code: 403, reason: 'Forbidden', message: 'denied' };
    const status = url.includes('/plans')
      ? denied
      : { code: 404, reason: 'NotFound', message: 'not found' };
    response.writeHead(status.code, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', ...status }),
    );
  });
  const kubeconfig = await kubeconfigFor(server.config.server);
  await expect(
    runController({ kubeconfig, ...FLAGS }, new AbortController().signal, []),
  ).rejects.toThrow('denied');
  expect(server.requests.map(({ url }) => url.replace(/\?.*/, ''))).toEqual([
    '/apis/autopilot.k0sproject.io/v1beta2/plans',
    // A server that has just started denies everything, so the refusal is repeated once the server is ready.
    '/readyz',
    '/apis/autopilot.k0sproject.io/v1beta2/plans',
  ]);
});

test.each(['99ms', '0', 'soon', '-1m'])(
  'a period of %s is refused before anybody is asked',
  async (text) => {
    vi.stubEnv('K0S_UPDATE_PERIOD', text);
    onTestFinished(() => void vi.unstubAllEnvs());
    const kubeconfig = await kubeconfigFor('http://127.0.0.1:9');
    const running = runController({ kubeconfig, ...FLAGS }, new AbortController().signal, []);
    await expect(running).rejects.toThrow(
      `K0S_UPDATE_PERIOD is "${text}"; use a duration such as 10m`,
    );
  },
);

test.each<[string, object, Record<string, string>, string]>([
  [
    'a flag of the dashboard without its address',
    { uiHost: ['a.example'] },
    {},
    '--ui-host needs --ui-address',
  ],
  [
    'tokens in plain text',
    { uiAddress: ':8443' },
    {},
    '--ui-address :8443 listens at all addresses',
  ],
  [
    'a header without a proxy',
    { uiAddress: '127.0.0.1:8443', uiTokenHeader: 'X-Token' },
    {},
    '--ui-token-header needs --ui-trusted-proxy',
  ],
  [
    'a folder without a certificate',
    { uiAddress: ':8443', uiCertDir: '/nowhere' },
    {},
    'cannot use /nowhere/tls.crt with /nowhere/tls.key',
  ],
  ['a period', {}, { K0S_UPDATE_CHECK_INTERVAL: 'soon' }, 'K0S_UPDATE_CHECK_INTERVAL is "soon"'],
  [
    'a collector of traces',
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
    'OTEL_EXPORTER_OTLP_ENDPOINT must be a URL',
  ],
])('%s: the mistake is told before the API server is asked', async (_what, flags, env, message) => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  await using server = await startStubServer((_, response) => void response.writeHead(500).end());
  const kubeconfig = await kubeconfigFor(server.config.server);
  const running = runController(
    { kubeconfig, ...FLAGS, applyCrds: true, ...flags },
    new AbortController().signal,
    [],
  );
  await expect(running).rejects.toThrow(message);
  expect(server.requests).toEqual([]);
});

/** Returns the path of a file that is removed at the end of the test. */
async function kubeconfigFor(server: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-start-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const kubeconfig = join(directory, 'kubeconfig');
  const lists = {
    clusters: [{ name: 'stub', cluster: { server } }],
    contexts: [{ name: 'stub', context: { cluster: 'stub', user: 'stub' } }],
    users: [{ name: 'stub', user: {} }],
  };
  await writeFile(
    kubeconfig,
    JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'stub', ...lists }),
  );
  return kubeconfig;
}
