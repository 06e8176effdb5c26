/** Tests that a refusal of an API server that has just started is not taken for a missing right. */
import { expect, onTestFinished, test } from 'vitest';
import { sendJson, startStubServer } from '../../../test/faults/stub-server.ts';
import { configMaps } from '../resources.ts';
import { isForbidden, TransportError } from '../status-error.ts';
import { createClient } from './http-client.ts';

const REFUSAL =
  'configmaps is forbidden: User "refit" cannot list resource "configmaps" in API group "" at the cluster scope';
const ADMISSION =
  'configmaps "x" is forbidden: exceeded quota: few, requested: 1, used: 1, limited: 1';
const LIST = {
  apiVersion: 'v1',
  kind: 'ConfigMapList',
  metadata: { resourceVersion: '1' },
  items: [],
};

interface Behaviour {
  /** The codes of /readyz, one after the other; the last one is repeated. */
  readonly readyz: readonly number[];
  /** How many other requests are refused. */
  readonly refusals: number;
  readonly message?: string;
}

async function serverWith({ readyz, refusals, message = REFUSAL }: Behaviour) {
  let asked = 0;
  let refused = 0;
  const server = await startStubServer((request, response) => {
    if (request.url === '/readyz') {
      const code = readyz[Math.min(asked++, readyz.length - 1)] ?? 500;
      return void response.writeHead(code).end();
    }
    if (refused++ < refusals)
      return sendJson(response, 403, { kind: 'Status', code: 403, reason: 'Forbidden', message });
    sendJson(response, 200, LIST);
  });
  const client = createClient(server.config);
  onTestFinished(async () => {
    client.close();
    await server[Symbol.asyncDispose]();
  });
  const paths = (): string[] => server.requests.map(({ url }) => url.split('?')[0] ?? '');
  return { client, paths };
}

const PATH = '/api/v1/configmaps';

test('a call that a starting server refuses waits until the server is ready, and is sent again', async () => {
  const { client, paths } = await serverWith({ readyz: [500, 403, 200], refusals: 1 });
  expect((await client.list(configMaps)).items).toEqual([]);
  expect(paths()).toEqual([PATH, '/readyz', '/readyz', '/readyz', PATH]);
});

test('a server that was ready is believed at once the next time', async () => {
  const { client, paths } = await serverWith({ readyz: [200], refusals: Number.POSITIVE_INFINITY });
  await expect(client.list(configMaps)).rejects.toSatisfy(isForbidden);
  await expect(client.list(configMaps)).rejects.toSatisfy(isForbidden);
  expect(paths()).toEqual([PATH, '/readyz', PATH, PATH]);
});

test('a server that does not become ready has not answered', async () => {
  const { client } = await serverWith({ readyz: [500], refusals: Number.POSITIVE_INFINITY });
  const thrown: unknown = await client.list(configMaps).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(TransportError);
  expect(thrown).toMatchObject({ maybeApplied: false });
  expect(String((thrown as TransportError).cause)).toContain('has not read the roles yet');
});

test('the refusal of a server that hides /readyz counts after some seconds, and at once afterwards', async () => {
  const { client, paths } = await serverWith({ readyz: [403], refusals: Number.POSITIVE_INFINITY });
  await expect(client.list(configMaps)).rejects.toSatisfy(isForbidden);
  const asked = paths().length;
  expect(asked).toBeGreaterThan(2);
  await expect(client.list(configMaps)).rejects.toSatisfy(isForbidden);
  expect(paths()).toHaveLength(asked + 1);
});

test('the refusal of a quota or an admission rule counts at once', async () => {
  const { client, paths } = await serverWith({ readyz: [500], refusals: 1, message: ADMISSION });
  await expect(client.list(configMaps)).rejects.toSatisfy(isForbidden);
  expect(paths()).toEqual([PATH]);
});
