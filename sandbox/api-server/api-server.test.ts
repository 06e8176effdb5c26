/**
 * Tests behaviour that nobody can provoke in a real server: compaction, forgotten history, bookmarks at fixed times,
 * and the in-memory server's own API.
 */
import { afterEach, expect, test, vi } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import {
  type ApiServer,
  type ApiServerOptions,
  type RequestRecord,
  startApiServer,
} from './api-server.ts';

let server: ApiServer;

afterEach(async () => {
  await server.stop();
});

const NODES = '/api/v1/nodes';

async function start(options: ApiServerOptions = {}): Promise<void> {
  server = await startApiServer(options);
}

async function call(method: string, path: string, body?: object, base = server.url) {
  const headers = {
    'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
  };
  const response = await fetch(`${base}${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  return { code: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function createNodes(...names: string[]): Promise<string> {
  const made = [];
  for (const name of names) made.push(await call('POST', NODES, { metadata: { name } }));
  return String(
    (made.at(-1)?.body['metadata'] as { resourceVersion?: string } | undefined)?.resourceVersion,
  );
}

/** The events of a watch so far, and whether the server has ended it. */
interface Watch {
  readonly events: { type: string; object: Record<string, unknown> }[];
  ended: boolean;
}

async function watch(query: string): Promise<Watch> {
  const { body } = await fetch(`${server.url}${NODES}?watch=true&${query}`);
  const result: Watch = { events: [], ended: false };
  if (body) void collect(body, result);
  return result;
}

async function collect(body: AsyncIterable<Uint8Array>, result: Watch): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      result.events.push(...lines.map((line) => JSON.parse(line) as Watch['events'][number]));
    }
  } catch (error) {
    // The test stopped the server while the watch was open.
    expect(error).toBeInstanceOf(TypeError);
  }
  result.ended = true;
}

test('after a compaction an older watch gets 410 as an ERROR event, one from now on does not', async () => {
  await start();
  const first = await createNodes('a');
  const last = await createNodes('b');
  server.compact();
  const old = await watch(`resourceVersion=${first}`);
  const present = await watch(`resourceVersion=${last}`);
  await createNodes('c');
  await vi.waitFor(() => expect([old.ended, present.events.length]).toEqual([true, 1]), 60_000);
  expect(old.events).toMatchObject([
    { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } },
  ]);
  expect(present.events).toMatchObject([{ type: 'ADDED', object: { metadata: { name: 'c' } } }]);
});

test('after a compaction the next page is refused, with a token to go on from the newest state', async () => {
  await start();
  await createNodes('a', 'b', 'd');
  const page = await call('GET', `${NODES}?limit=1`);
  await createNodes('c');
  server.compact();
  const token = (list: typeof page): string =>
    (list.body['metadata'] as { continue: string }).continue;
  const refused = await call('GET', `${NODES}?limit=1&continue=${token(page)}`);
  expect(refused).toMatchObject({ code: 410, body: { reason: 'Expired' } });
  const rest = await call('GET', `${NODES}?continue=${token(refused)}`);
  expect(rest.body['items']).toMatchObject(['b', 'c', 'd'].map((name) => ({ metadata: { name } })));
});

test('after a compaction an exact older list is refused', async () => {
  await start();
  const first = await createNodes('a');
  await createNodes('b');
  const path = `${NODES}?resourceVersion=${first}&resourceVersionMatch=Exact`;
  expect((await call('GET', path)).body['items']).toHaveLength(1);
  server.compact();
  expect(await call('GET', path)).toMatchObject({ code: 410, body: { reason: 'Expired' } });
});

test('history beyond its limit is forgotten without a compaction', async () => {
  await start({ eventHistory: 3 });
  const first = await createNodes('a');
  const last = await createNodes('b', 'c', 'd', 'e', 'f', 'g', 'h');
  const old = await watch(`resourceVersion=${first}`);
  const recent = await watch(`resourceVersion=${last}`);
  await createNodes('i');
  await vi.waitFor(() => expect(recent.events).toHaveLength(1), 60_000);
  await vi.waitFor(
    () => expect(old.events).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]),
    60_000,
  );
});

test('bookmarks come at every interval and before the end, with the revision of the whole server', async () => {
  const clock = new FakeClock();
  await start({ clock, bookmarkIntervalMs: 10_000 });
  const bookmarked = await watch('allowWatchBookmarks=true&resourceVersion=1&timeoutSeconds=25');
  const silent = await watch('resourceVersion=1&timeoutSeconds=25');
  await call('POST', '/api/v1/namespaces', { metadata: { name: 'other-resource' } });
  const revision = server
    .objects('', 'namespaces')
    .find(({ metadata }) => metadata.name === 'other-resource');
  const bookmark = {
    type: 'BOOKMARK',
    object: {
      kind: 'Node',
      metadata: revision && { resourceVersion: revision.metadata.resourceVersion },
    },
  };
  for (const [elapsed, count] of [
    [9_999, 0],
    [1, 1],
    [10_000, 2],
    [3_000, 3],
  ] as const) {
    await clock.advance(elapsed);
    await vi.waitFor(
      () => expect(bookmarked.events).toMatchObject(Array.from({ length: count }, () => bookmark)),
      60_000,
    );
  }
  expect(bookmarked.ended).toBe(false);
  await clock.advance(2_000);
  await vi.waitFor(() => expect([bookmarked.ended, silent.ended]).toEqual([true, true]), 60_000);
  expect(silent.events).toEqual([]);
  await vi.waitFor(() => expect(clock.pending).toBe(0), 60_000);
});

test("times are the clock's", async () => {
  await start({ clock: new FakeClock(Date.UTC(2030, 4, 6, 7, 8, 9)) });
  const { body } = await call('POST', NODES, { metadata: { name: 'a' } });
  expect(body['metadata']).toMatchObject({ creationTimestamp: '2030-05-06T07:08:09Z' });
});

test('every address serves the same objects on the same port', async () => {
  await start({ addresses: ['127.0.0.1', '127.0.0.2'] });
  await createNodes('a');
  const [first, second] = server.urls.map((url) => new URL(url));
  expect(second).toMatchObject({ hostname: '127.0.0.2', port: first?.port });
  expect(await call('GET', `${NODES}/a`, undefined, server.urls[1])).toMatchObject({ code: 200 });
});

test('requests are told as they are answered, watches as they begin', async () => {
  const records: RequestRecord[] = [];
  await start({ onRequest: (record) => records.push(record) });
  await createNodes('a');
  await call('GET', '/apis/coordination.k8s.io/v1/namespaces/default/leases/none');
  await watch('');
  await fetch(`${server.url}/readyz`);
  await vi.waitFor(() => expect(records).toHaveLength(4), 60_000);
  expect(records.map(({ verb, resource, name, code }) => [verb, resource, name, code])).toEqual([
    ['create', 'nodes', undefined, 201],
    ['get', 'leases.coordination.k8s.io', 'none', 404],
    ['watch', 'nodes', undefined, 200],
    ['get', '/readyz', undefined, 200],
  ]);
});

test.each([
  ['GET', '/api/v1/endpoints'],
  ['POST', '/api/v1/namespaces/default/services'],
  ['GET', '/apis/apps/v1/deployments?watch=true'],
  ['GET', '/api/v1/watch/nodes'],
  ['GET', '/apis/autoscaling/v2/horizontalpodautoscalers'],
  ['POST', '/apis/apps/v1/namespaces/default/deployments'],
  ['GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles'],
  ['POST', '/api/v1/namespaces/default/pods/p/binding'],
  ['PUT', '/api/v1/namespaces/default/finalize'],
  ['DELETE', '/api/v1/namespaces/default/pods/p?propagationPolicy=Foreground'],
])('%s %s is not implemented, and says so', async (method, path) => {
  await start();
  expect(await call(method, path)).toMatchObject({
    code: 501,
    body: { kind: 'Status', reason: 'NotImplemented' },
  });
});

test.each([
  ['embedded objects', { 'x-kubernetes-embedded-resource': true }],
  ['a format that is not checked here', { format: 'hostname' }],
])('a definition with %s is refused rather than half obeyed', async (_name, schema) => {
  await start();
  const spec = {
    group: 'example.com',
    names: { plural: 'widgets', kind: 'Widget' },
    scope: 'Cluster',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', properties: { a: { type: 'string', ...schema } } },
        },
      },
    ],
  };
  const answer = await call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: 'widgets.example.com' },
    spec,
  });
  expect(answer).toMatchObject({
    code: 501,
    body: { message: expect.stringContaining('the schema of v1') as string },
  });
});

test('stopping ends open watches', async () => {
  await start();
  const open = await watch('');
  await server.stop();
  await vi.waitFor(() => expect(open.ended).toBe(true), 60_000);
  await start();
});
