/**
 * Tests what is sent over the wire: paths, queries, bodies, and how all kinds of answers are
 * returned.
 */
import { access } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import {
  type SeenRequest,
  sendJson,
  sendStatus,
  startStubServer,
} from '../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { KubeClient } from '../client.ts';
import { leases, type Node, nodes, pods } from '../resources.ts';
import { isConflict, isNotFound, StatusError, TransportError } from '../status-error.ts';
import type { RequestRecord } from './call-sender.ts';
import { createClient } from './http-client.ts';

const OBJECT = { metadata: { name: 'n1', namespace: 'ns' }, future: { kept: true } };

const PATH = 'GET /api/v1/nodes/n1';
const lease = { metadata: { name: 'l', namespace: 'ns', resourceVersion: '5' } };

/** Resolves with the reason with which a promise rejects. */
async function failure(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  );
}

test.each<
  [string, (client: KubeClient) => Promise<unknown>, Partial<SeenRequest> & { type?: string }]
>([
  ['get', async (c) => await c.get(nodes, 'n1'), { method: 'GET', url: '/api/v1/nodes/n1' }],
  [
    'get in a namespace, with odd characters',
    async (c) => await c.get(leases, 'a/b', { namespace: 'n s' }),
    { method: 'GET', url: '/apis/coordination.k8s.io/v1/namespaces/n%20s/leases/a%2Fb' },
  ],
  [
    'list',
    async (c) =>
      await c.list(pods, { labelSelector: 'a=b,c', fieldSelector: 'spec.nodeName=w1', limit: 5 }),
    { url: '/api/v1/pods?labelSelector=a%3Db%2Cc&fieldSelector=spec.nodeName%3Dw1&limit=5' },
  ],
  [
    'create',
    async (c) => await c.create(leases, lease),
    {
      method: 'POST',
      url: '/apis/coordination.k8s.io/v1/namespaces/ns/leases?fieldManager=refit',
      body: JSON.stringify(lease),
      type: 'application/json',
    },
  ],
  [
    'replace, of a subresource',
    async (c) =>
      await c.replace(
        nodes,
        { metadata: { name: 'n1' } },
        { subresource: 'status', fieldManager: 'me' },
      ),
    {
      method: 'PUT',
      url: '/api/v1/nodes/n1/status?fieldManager=me',
      body: '{"metadata":{"name":"n1"}}',
    },
  ],
  [
    'a merge patch',
    async (c) => await c.patch(nodes, 'n1', { a: 1 }, { type: 'merge' }),
    {
      method: 'PATCH',
      url: '/api/v1/nodes/n1?fieldManager=refit',
      body: '{"a":1}',
      type: 'application/merge-patch+json',
    },
  ],
  [
    'a JSON patch',
    async (c) => await c.patch(nodes, 'n1', [], { type: 'json', force: true }),
    { url: '/api/v1/nodes/n1?fieldManager=refit', body: '[]', type: 'application/json-patch+json' },
  ],
  [
    'server-side apply',
    async (c) => await c.patch(nodes, 'n1', {}, { type: 'apply', force: true }),
    { url: '/api/v1/nodes/n1?fieldManager=refit&force=true', type: 'application/apply-patch+yaml' },
  ],
  [
    'delete with preconditions',
    async (c) =>
      await c.delete(leases, 'l', { namespace: 'ns', uid: 'u', propagationPolicy: 'Background' }),
    {
      method: 'DELETE',
      url: '/apis/coordination.k8s.io/v1/namespaces/ns/leases/l',
      body: '{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background","preconditions":{"uid":"u"}}',
    },
  ],
  [
    'evict',
    async (c) => await c.evict({ name: 'p', namespace: 'ns', uid: 'u' }, { gracePeriodSeconds: 7 }),
    {
      method: 'POST',
      url: '/api/v1/namespaces/ns/pods/p/eviction',
      body: '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p","namespace":"ns"},"deleteOptions":{"gracePeriodSeconds":7,"preconditions":{"uid":"u"}}}',
    },
  ],
])('%s', async (_name, act, { type, ...expected }) => {
  await using server = await startStubServer((_request, response) =>
    sendJson(response, 200, OBJECT),
  );
  const client = createClient(server.config, { userAgent: 'refit-test' });
  await act(client);
  client.close();
  expect(server.requests).toEqual([expect.objectContaining(expected)]);
  expect(server.requests[0]?.headers).toMatchObject({
    accept: 'application/json',
    'user-agent': 'refit-test',
    ...(type === undefined ? {} : { 'content-type': type }),
  });
});

test('a watch asks for bookmarks and gives events until the server ends it', async () => {
  const events = ['ADDED', 'BOOKMARK'].map((type) => ({ type, object: OBJECT }));
  await using server = await startStubServer((_request, response) => {
    response.writeHead(200).end(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  });
  const client = createClient(server.config);
  const seen: unknown[] = [];
  for await (const event of client.watch(nodes, { sendInitialEvents: true, timeoutSeconds: 9 }))
    seen.push(event);
  expect(seen).toEqual(events);
  const query = Object.fromEntries(new URL(server.requests[0]?.url ?? '', 'http://x').searchParams);
  expect(query).toEqual({
    watch: 'true',
    allowWatchBookmarks: 'true',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    timeoutSeconds: '9',
  });
});

test('the client keeps unknown fields, and gives each item of a list its apiVersion and kind', async () => {
  await using server = await startStubServer((_request, response) => {
    sendJson(response, 200, { metadata: { resourceVersion: '7' }, items: [OBJECT] });
  });
  const { items } = await createClient(server.config).list(nodes);
  expect(items).toEqual([{ apiVersion: 'v1', kind: 'Node', ...OBJECT }]);
});

test('listAll follows the pages of one list, whose version only the first may name', async () => {
  await using server = await startStubServer(({ url }, response) => {
    const page = Number(new URL(url, 'http://x').searchParams.get('continue') ?? 0);
    const metadata = { resourceVersion: '7', ...(page < 2 ? { continue: String(page + 1) } : {}) };
    sendJson(response, 200, { metadata, items: [{ metadata: { name: `n${page}` } }] });
  });
  const list = await createClient(server.config).listAll(nodes, {
    labelSelector: 'a',
    resourceVersion: '0',
  });
  expect(list.items.map(({ metadata }) => metadata.name)).toEqual(['n0', 'n1', 'n2']);
  expect(server.requests.map(({ url }) => url.split('?')[1])).toEqual([
    'labelSelector=a&limit=500&resourceVersion=0',
    'labelSelector=a&limit=500&continue=1',
    'labelSelector=a&limit=500&continue=2',
  ]);
});

test('listAll changes the objects of each page', async () => {
  await using server = await startStubServer(({ url }, response) => {
    const isFirst = !url.includes('continue');
    sendJson(response, 200, { metadata: isFirst ? { continue: '1' } : {}, items: [OBJECT] });
  });
  const transform = ({ metadata: { name } }: Node): Node => ({
    metadata: { name: `${name}-small` },
  });
  const { items } = await createClient(server.config).listAll(nodes, { transform });
  const small = { metadata: { name: `${OBJECT.metadata.name}-small` } };
  expect(items).toEqual([small, small]);
});

test('200 requests need one connection', async () => {
  await using server = await startStubServer((_request, response) =>
    sendJson(response, 200, OBJECT),
  );
  const client = createClient(server.config);
  for (let count = 0; count < 200; count++) await client.get(nodes, 'n1');
  expect(server.requests).toHaveLength(200);
  expect(server.connections()).toBe(1);
});

test('a burst of requests uses the connections of the one before', async () => {
  const waiting: ServerResponse[] = [];
  await using server = await startStubServer((_request, response) => {
    waiting.push(response);
    if (waiting.length === 32) for (const each of waiting.splice(0)) sendJson(each, 200, OBJECT);
  });
  const client = createClient(server.config);
  for (let burst = 0; burst < 3; burst++)
    await Promise.all(Array.from({ length: 32 }, async () => await client.get(nodes, 'n1')));
  expect(server.connections()).toBe(32);
});

test.each<[string, (response: ServerResponse) => void, object, string]>([
  [
    'a Status',
    (r) => sendStatus(r, 409, 'Conflict'),
    { code: 409, reason: 'Conflict' },
    'Conflict as scripted',
  ],
  [
    'a page',
    (r) => r.writeHead(404).end('404 page'),
    { code: 404, reason: 'NotFound' },
    `${PATH}: 404 404 page`,
  ],
  ['nothing', (r) => r.writeHead(502).end(), { code: 502, reason: '' }, `${PATH}: 502 Bad Gateway`],
  [
    'a time',
    (r) => sendStatus(r, 500, '', { 'retry-after': '3' }),
    { code: 500, retryAfterMs: 3_000 },
    ' as scripted',
  ],
])('a refusal with %s', async (_name, respond, expected, message) => {
  await using server = await startStubServer((_request, response) => respond(response));
  const error = await failure(createClient(server.config).get(nodes, 'n1'));
  expect(error).toBeInstanceOf(StatusError);
  expect(error).toMatchObject({ ...expected, message, server: server.config.server });
});

test('an overloaded server is asked again when it says, and only for what may be sent twice', async () => {
  const clock = new FakeClock();
  let refusals = 2;
  await using server = await startStubServer(({ method }, response) => {
    if (method === 'POST' || refusals-- > 0)
      sendStatus(response, 429, 'TooManyRequests', { 'retry-after': '1' });
    else sendJson(response, 200, OBJECT);
  });
  const client = createClient(server.config, { clock });
  const got = client.get(nodes, 'n1');
  const requestsAfterASecond = async (): Promise<number> => {
    await clock.advance(1_000);
    return server.requests.length;
  };
  await expect.poll(requestsAfterASecond).toBe(3);
  expect(await got).toEqual(OBJECT);
  await expect(client.create(leases, lease)).rejects.toMatchObject({
    code: 429,
    retryAfterMs: 1_000,
  });
  expect(server.requests).toHaveLength(4);
});

test.each(['0', '-1'])(
  'a server that asks to come back at once (%s) is not asked without pause',
  async (seconds) => {
    const clock = new FakeClock();
    await using server = await startStubServer((_request, response) =>
      sendStatus(response, 429, 'TooManyRequests', { 'retry-after': seconds }),
    );
    const failed = failure(
      createClient(server.config, { clock, deadlineMs: 300 }).get(nodes, 'n1'),
    );
    for (const count of [1, 2, 3]) {
      await expect.poll(() => server.requests.length).toBe(count);
      await expect.poll(() => clock.pending).toBe(2);
      await clock.advance(100);
    }
    expect(await failed).toBeInstanceOf(TransportError);
    expect(server.requests).toHaveLength(3);
  },
);

test('a wait beyond the deadline is not begun', async () => {
  await using server = await startStubServer((_request, response) =>
    sendStatus(response, 503, 'ServiceUnavailable', { 'retry-after': '60' }),
  );
  await expect(createClient(server.config).get(nodes, 'n1')).rejects.toMatchObject({ code: 503 });
  expect(server.requests).toHaveLength(1);
});

test.each([
  ['GET', false, async (client: KubeClient) => await client.get(nodes, 'n1')],
  ['PUT', true, async (client: KubeClient) => await client.replace(leases, lease)],
])(
  'a %s without an answer ends with its deadline; it may have been applied: %s',
  async (_m, maybeApplied, act) => {
    const clock = new FakeClock();
    await using server = await startStubServer(() => undefined);
    const client = createClient(server.config, { clock, deadlineMs: 5_000 });
    const failed = failure(act(client));
    await expect.poll(() => server.requests.length).toBe(1);
    await clock.advance(5_000);
    const error = await failed;
    expect(error).toBeInstanceOf(TransportError);
    expect(error).toMatchObject({ maybeApplied, cause: { message: 'no answer within 5 s' } });
  },
);

test('the deadline covers the body too', async () => {
  const clock = new FakeClock();
  await using server = await startStubServer(
    (_request, response) => void response.writeHead(200).write('{'),
  );
  const heads: RequestRecord[] = [];
  const client = createClient(server.config, { clock, onRequest: (record) => heads.push(record) });
  const failed = failure(client.get(nodes, 'n1'));
  await expect.poll(() => heads.length).toBe(1);
  await clock.advance(30_000);
  expect(await failed).toMatchObject({
    name: 'TransportError',
    cause: { message: 'no answer within 30 s' },
  });
});

test('a watch that falls silent is given up', async () => {
  const clock = new FakeClock();
  await using server = await startStubServer((_request, response) => {
    response.writeHead(200).write(`${JSON.stringify({ type: 'ADDED', object: OBJECT })}\n`);
  });
  const client = createClient(server.config, { clock, watchIdleMs: 1_000 });
  const watch = client.watch(nodes)[Symbol.asyncIterator]();
  expect((await watch.next()).value).toMatchObject({ type: 'ADDED' });
  const failed = failure(watch.next());
  await clock.advance(1_000);
  expect(await failed).toMatchObject({
    name: 'TransportError',
    cause: { message: 'the watch sent nothing for 1 s' },
  });
});

test('nothing is sent where nobody listens, and the error says so', async () => {
  const server = await startStubServer(() => undefined);
  await server[Symbol.asyncDispose]();
  const error = await failure(createClient(server.config).create(leases, lease));
  expect(error).toMatchObject({
    maybeApplied: false,
    cause: { code: 'ECONNREFUSED' },
    server: server.config.server,
  });
});

test('a connection that the server closed in the meantime costs a read nothing', async () => {
  await using server = await startStubServer(({ socket }, response) => {
    if (server.requests.length === 2) socket.resetAndDestroy();
    else sendJson(response, 200, OBJECT);
  });
  const client = createClient(server.config);
  await client.get(nodes, 'n1');
  expect(await client.get(nodes, 'n1')).toEqual(OBJECT);
  expect(server.requests).toHaveLength(3);
});

test('a write on such a connection fails, as nobody knows whether it was applied', async () => {
  await using server = await startStubServer(({ method, socket }, response) => {
    if (method === 'PUT') socket.resetAndDestroy();
    else sendJson(response, 200, OBJECT);
  });
  const client = createClient(server.config);
  await client.get(nodes, 'n1');
  await expect(client.replace(leases, lease)).rejects.toMatchObject({ maybeApplied: true });
  expect(server.requests).toHaveLength(2);
});

test('a caller who gives up is told so', async () => {
  await using server = await startStubServer(() => undefined);
  const stop = new AbortController();
  const failed = failure(createClient(server.config).get(nodes, 'n1', { abort: stop.signal }));
  await expect.poll(() => server.requests.length).toBe(1);
  stop.abort(new Error('no longer needed'));
  expect(await failed).toMatchObject({
    name: 'TransportError',
    cause: { message: 'aborted by the caller' },
  });
});

test('closing ends what is under way, watches too', async () => {
  await using server = await startStubServer((_request, response) =>
    response.writeHead(200).flushHeaders(),
  );
  const client = createClient(server.config);
  const events = client.watch(nodes)[Symbol.asyncIterator]();
  const watch = failure(events.next());
  const got = failure(client.get(nodes, 'n1'));
  await expect.poll(() => server.requests.length).toBe(2);
  client.close();
  for (const error of [await watch, await got]) {
    expect(error).toMatchObject({
      name: 'TransportError',
      cause: { message: 'the client was closed' },
    });
  }
});

test('a closed client sends nothing more', async () => {
  await using server = await startStubServer((_request, response) =>
    sendJson(response, 200, OBJECT),
  );
  const client = createClient(server.config);
  client.close();
  expect(await failure(client.create(leases, lease))).toMatchObject({
    maybeApplied: false,
    cause: { message: 'the client was closed' },
  });
  expect(server.requests).toEqual([]);
});

test('each attempt is reported', async () => {
  const clock = new FakeClock();
  await using server = await startStubServer((_request, response) => {
    if (server.requests.length === 1)
      sendStatus(response, 503, 'ServiceUnavailable', { 'retry-after': '1' });
    else sendJson(response, 200, OBJECT);
  });
  const records: RequestRecord[] = [];
  const client = createClient(server.config, {
    clock,
    onRequest: (record) => records.push(record),
  });
  const done = client.replace(nodes, { metadata: { name: 'n1' } }, { subresource: 'status' });
  const recordsAfterASecond = async (): Promise<number> => {
    await clock.advance(1_000);
    return records.length;
  };
  await expect.poll(recordsAfterASecond).toBe(2);
  await done;
  const { host } = new URL(server.config.server);
  const shared = {
    verb: 'update',
    method: 'PUT',
    host,
    resource: 'nodes/status',
    ms: expect.any(Number),
  };
  expect(records).toEqual([
    { ...shared, code: 503 },
    { ...shared, code: 200 },
  ]);
});

test('errors know what they are', async () => {
  await using server = await startStubServer(({ method }, response) =>
    method === 'GET'
      ? sendStatus(response, 404, 'NotFound')
      : sendStatus(response, 409, 'Conflict'),
  );
  const client = createClient(server.config);
  await expect(client.get(nodes, 'n1')).rejects.toSatisfy(isNotFound);
  await expect(client.replace(leases, lease)).rejects.toSatisfy(isConflict);
});

test('a request that is given up before its credentials are read fails once, and ends nobody', async () => {
  const config = { server: 'https://127.0.0.1:1', user: { tokenFile: '/nonexistent/token' } };
  const client = createClient({ ...config, namespace: 'default', files: [] });
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  const given = AbortSignal.abort(new Error('stop'));
  expect(messageOf(await failure(client.get(nodes, 'n1', { abort: given })))).toContain('stop');
  await expect(access('/nonexistent/token')).rejects.toThrow('ENOENT');
  await new Promise((resolve) => void setImmediate(resolve));
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

test.each([{ kind: 'Pod', metadata: { name: 'a' } }, { kind: 'Node' }])(
  'a watch refuses what it did not ask for: %j',
  async (object) => {
    await using server = await startStubServer((_request, response) => {
      response.writeHead(200).end(`${JSON.stringify({ type: 'ADDED', object })}\n`);
    });
    const events = createClient(server.config).watch(nodes)[Symbol.asyncIterator]();
    expect(await failure(events.next())).toMatchObject({ cause: { name: 'AnswerError' } });
  },
);
