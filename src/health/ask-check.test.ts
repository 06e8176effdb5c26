/** Tests that each kind of health check asks the system that it is about. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import type { KubeClient } from '../kube/client.ts';
import { StatusError } from '../kube/status-error.ts';
import { templateJobs } from '../kube/template-jobs.ts';
import { systemClock } from '../util/clock.ts';
import { checkAsker } from './ask-check.ts';
import type { HealthCheck } from './checks.ts';

/** An API server without objects. It serves one kind. */
const client = {
  raw: async () =>
    await Promise.resolve({ status: 200, body: '{"resources":[{"kind":"Pool","name":"pools"}]}' }),
  list: async () => await Promise.resolve({ items: [], metadata: {} }),
  listAll: async () => await Promise.resolve({ items: [], metadata: {} }),
  get: async () => await Promise.reject(new StatusError({ kind: 'Status', code: 404 })),
  create: async (_kind: unknown, job: unknown) => await Promise.resolve(job),
} as unknown as KubeClient;

const REACHED: Readonly<Record<string, unknown>> = {
  '/api/v1/query': { resultType: 'scalar', result: [1, '0'] },
  '/api/v1/alerts': { alerts: [] },
};

test.each<[HealthCheck['kind'], (url: string) => object, RegExp]>([
  ['daemonSets', () => ({ pods: 'all' }), /^0 pods of DaemonSets are Ready$/],
  [
    'resources',
    () => ({ apiVersion: 'example.com/v1', objectKind: 'Pool', expression: 'true' }),
    /^it selects no object of the kind Pool$/,
  ],
  [
    'jobs',
    () => ({ namespace: 'tests', spec: {}, timeoutMs: 1_000, everyMs: 1_000 }),
    /^Job tests\/refit-some-\w+ starts$/,
  ],
  ['http', (url) => ({ url }), /^http:\/\/.+ answered 404 Not Found; only 200 to 299 are good$/],
  ['metrics', (url) => ({ url, query: 'up', max: 1 }), /^the value is 0, within max 1$/],
  [
    'alerts',
    (url) => ({ url, source: 'prometheus', labels: { a: 'b' } }),
    /^no alert with a=b fires$/,
  ],
])('a check of the kind %s gets its answer', async (kind, fieldsFor, expected) => {
  const server = createServer(({ url = '' }, response) => {
    const data = REACHED[url.split('?')[0] ?? ''];
    response.writeHead(data === undefined ? 404 : 200);
    response.end(JSON.stringify({ status: 'success', data }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const templates = templateJobs(client, { refusalOf: () => undefined });
  const ask = checkAsker(
    {
      client,
      templates,
      clock: systemClock,
      namespace: 'refit-system',
      environment: {},
    },
    () => ({ state: 'passing', message: 'ready' }),
  );
  const check = { kind, name: 'some', ...fieldsFor(`http://127.0.0.1:${port}`) } as HealthCheck;
  const need = { policy: 'p', after: 0, now: 0 };
  const { message } = await ask(check, new Set(['n1']), new AbortController().signal, need);
  expect(message).toMatch(expected);
  server.closeAllConnections();
  server.close();
});
