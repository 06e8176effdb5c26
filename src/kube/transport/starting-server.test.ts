/** Tests that a refusal of an API server that has just started is not taken for a missing right. */
import { expect, onTestFinished, test } from 'vitest';
import { sendJson, startStubServer } from '../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { SkewedClock } from '../../../test/support/clock/skewed-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { systemClock } from '../../util/clock.ts';
import { configMaps } from '../resources.ts';
import { isForbidden, TransportError } from '../status-error.ts';
import { createClient } from './http-client.ts';
import { startingServer } from './starting-server.ts';
import { timeLimit } from './time-limit.ts';

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
  /** The codes of /api, in the same way; 403 by default. */
  readonly api?: readonly number[];
  /** How many other requests are refused. */
  readonly refusals: number;
  readonly message?: string;
}

async function serverWith({ readyz, api = [403], refusals, message = REFUSAL }: Behaviour) {
  const left = { '/readyz': [...readyz], '/api': [...api] };
  let refused = 0;
  const server = await startStubServer((request, response) => {
    const { url } = request;
    if (url === '/readyz' || url === '/api') {
      const codes = left[url];
      const [code = 500] = codes.length > 1 ? codes.splice(0, 1) : codes;
      return void response.writeHead(code).end();
    }
    if (refused++ < refusals)
      return sendJson(response, 403, { kind: 'Status', code: 403, reason: 'Forbidden', message });
    sendJson(response, 200, LIST);
  });
  // The clock runs faster, because a server may refuse everything for many seconds.
  const clock = new SkewedClock(systemClock, { rate: 20 });
  const client = createClient(server.config, { clock });
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
  expect((await client.list(configMaps, { deadlineMs: 600_000 })).items).toEqual([]);
  expect(paths()).toEqual([PATH, '/readyz', '/readyz', '/api', '/readyz', PATH]);
});

test('a server that hides /readyz, and answers what every user may ask, is believed without a pause', async () => {
  const all = Number.POSITIVE_INFINITY;
  const { client, paths } = await serverWith({ readyz: [403], api: [200], refusals: all });
  await expect(client.list(configMaps, { deadlineMs: 600_000 })).rejects.toSatisfy(isForbidden);
  expect(paths()).toEqual([PATH, '/readyz', '/api', PATH]);
});

test.each([
  [6_000, 'repeat'],
  [19_000, 'repeat'],
  [21_000, 'counts'],
])(
  'a server that refuses everything for %s ms, and then has read the roles: %s',
  async (ms, verdict) => {
    const clock = new FakeClock(T0);
    let code = 403;
    const starting = startingServer({ clock, ask: async () => await Promise.resolve(code) });
    using limit = timeLimit(clock, undefined);
    limit.allow(600_000, 'too late');
    const judged = starting.judge(limit);
    await clock.advance(ms);
    code = 200;
    await clock.advance(1_000);
    expect(await judged).toBe(verdict);
  },
);

test('a server that was ready is believed at once the next time', async () => {
  const { client, paths } = await serverWith({ readyz: [200], refusals: Number.POSITIVE_INFINITY });
  await expect(client.list(configMaps, { deadlineMs: 600_000 })).rejects.toSatisfy(isForbidden);
  await expect(client.list(configMaps, { deadlineMs: 600_000 })).rejects.toSatisfy(isForbidden);
  expect(paths()).toEqual([PATH, '/readyz', PATH, PATH]);
});

test('a server that does not become ready has not answered', async () => {
  const { client } = await serverWith({ readyz: [500], refusals: Number.POSITIVE_INFINITY });
  const thrown: unknown = await client
    .list(configMaps, { deadlineMs: 600_000 })
    .catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(TransportError);
  expect(thrown).toMatchObject({ maybeApplied: false });
  expect(String((thrown as TransportError).cause)).toContain('has not read the roles yet');
});

test('the refusal of a server that refuses everything counts after some time, and at once afterwards', async () => {
  const { client, paths } = await serverWith({ readyz: [403], refusals: Number.POSITIVE_INFINITY });
  await expect(client.list(configMaps, { deadlineMs: 600_000 })).rejects.toSatisfy(isForbidden);
  const asked = paths().length;
  expect(asked).toBeGreaterThan(2);
  await expect(client.list(configMaps, { deadlineMs: 600_000 })).rejects.toSatisfy(isForbidden);
  expect(paths()).toHaveLength(asked + 1);
});

test('the refusal of a quota or an admission rule counts at once', async () => {
  const { client, paths } = await serverWith({ readyz: [500], refusals: 1, message: ADMISSION });
  await expect(client.list(configMaps, { deadlineMs: 600_000 })).rejects.toSatisfy(isForbidden);
  expect(paths()).toEqual([PATH]);
});
