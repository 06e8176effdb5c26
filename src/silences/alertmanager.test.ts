/**
 * Tests the requests to Alertmanager, with credentials from a Secret. The tests with a real Alertmanager are in
 * test/testenv/silences.test.ts.
 */
import { expect, test, vi } from 'vitest';
import { type Script, startStubServer } from '../../test/faults/stub-server.ts';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { secrets } from '../kube/resources.ts';
import { messageOf } from '../util/errors.ts';
import { alertmanager } from './alertmanager.ts';
import { wantedFor } from './silence.ts';

const NEVER = new AbortController().signal;
const TOKEN = 'a-token-of-these-tests';

async function rig(script: Script) {
  const server = await startStubServer(script);
  const api = new MemoryApi();
  api.put(secrets, { metadata: { name: 'monitoring' }, data: { token: btoa(TOKEN) } });
  const clock = new FakeClock();
  const tools = { client: api.client, namespace: 'refit-system', environment: {}, clock };
  const matchers = [{ name: 'node', value: '{node}', isRegex: false }];
  const url = `${server.config.server}/am/`;
  const rule = { name: 'nodes', url, secretName: 'monitoring', matchers, lastsMs: 300_000 };
  const wanted = wantedFor(rule, { plan: 'toy/ns/plan', uid: 'uid-1' }, 'w1');
  const own = {
    id: 'a/b',
    status: { state: 'active' },
    matchers: wanted.matchers,
    startsAt: '2025-12-31T00:00:00Z',
    endsAt: '2026-01-01T00:01:00Z',
    createdBy: 'refit',
    comment: wanted.comment,
  };
  const later = (minutes: number): string => new Date(clock.now() + minutes * 60_000).toISOString();
  return { server, wanted, own, later, clock, am: alertmanager(tools) };
}

test('a silence is looked for, and made below the path of the server, with the token', async () => {
  const scene = await rig(({ method }, response) =>
    response.end(method === 'GET' ? '[]' : '{"silenceID":"1"}'),
  );
  await using server = scene.server;
  expect(await scene.am.keep(scene.wanted, NEVER)).toMatchObject({ id: '1' });
  const headers = { authorization: `Bearer ${TOKEN}` };
  expect(server.requests).toMatchObject([
    { method: 'GET', url: '/am/api/v2/silences?filter=node%3D%22w1%22', headers },
    {
      method: 'POST',
      url: '/am/api/v2/silences',
      headers: { ...headers, 'content-type': 'application/json' },
    },
  ]);
  expect(JSON.parse(server.requests[1]?.body ?? '')).toMatchObject({ createdBy: 'refit' });
});

test('a silence that lasts long enough is not posted again, and is returned', async () => {
  const scene = await rig((_request, response) =>
    response.end(JSON.stringify([{ ...scene.own, endsAt: scene.later(5) }])),
  );
  await using server = scene.server;
  const { id, startsAt } = scene.own;
  expect(await scene.am.keep(scene.wanted, NEVER)).toMatchObject({ id, startsAt });
  expect(server.requests).toHaveLength(1);
});

test('all silences of Refit for the node are ended, and no id changes the address', async () => {
  const scene = await rig(({ method }, response) => {
    const { own } = scene;
    const all = [own, { ...own, id: 'c' }, { ...own, id: 'd', createdBy: 'ann' }];
    response.end(method === 'GET' ? JSON.stringify(all) : '');
  });
  await using server = scene.server;
  await scene.am.end(scene.wanted, NEVER);
  expect(server.requests.slice(1)).toMatchObject([
    { method: 'DELETE', url: '/am/api/v2/silence/a%2Fb' },
    { method: 'DELETE', url: '/am/api/v2/silence/c' },
  ]);
});

test.each<[string, Script, string]>([
  [
    'a refusal that quotes the token',
    (_request, response) => response.writeHead(400).end(JSON.stringify(`bad ${TOKEN}`)),
    'answered 400 Bad Request: bad ***',
  ],
  [
    'a redirect',
    (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    'answered 302 Found',
  ],
  [
    'another server',
    (_request, response) => response.end('{}'),
    'did not answer like Alertmanager',
  ],
])('%s is a problem, and nothing is made', async (_what, script, problem) => {
  const { wanted, am, ...scene } = await rig(script);
  await using server = scene.server;
  await expect(am.keep(wanted, NEVER)).rejects.toThrow(`127.0.0.1:${server.port} ${problem}`);
  expect(server.requests).toHaveLength(1);
});

test('the state of the server is asked below its path, with the token, and changes nothing', async () => {
  const scene = await rig((_request, response) => response.end('{"versionInfo":{}}'));
  await using server = scene.server;
  await scene.am.reach(scene.wanted.rule, NEVER);
  expect(server.requests).toMatchObject([
    { method: 'GET', url: '/am/api/v2/status', headers: { authorization: `Bearer ${TOKEN}` } },
  ]);
});

test.each([
  ['another server', '{"status":"ok"}'],
  ['a page', '<html></html>'],
])('%s is not taken for an Alertmanager', async (_what, body) => {
  const scene = await rig((_request, response) => response.end(body));
  await using server = scene.server;
  await expect(scene.am.reach(scene.wanted.rule, NEVER)).rejects.toThrow(
    `127.0.0.1:${server.port} did not answer like Alertmanager`,
  );
});

test('a server that never answers is given up after 10 s', async () => {
  const scene = await rig(() => undefined);
  await using server = scene.server;
  const reached = scene.am.reach(scene.wanted.rule, NEVER).catch(messageOf);
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), 60_000);
  await scene.clock.advance(10_000);
  expect(await reached).toBe(`127.0.0.1:${server.port} gave no answer within 10 s`);
});
