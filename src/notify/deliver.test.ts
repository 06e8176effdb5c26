/** Tests the delivery of messages over HTTP, and that no reported problem contains a secret. */
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { startStubServer } from '../../test/faults/stub-server.ts';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { secrets } from '../kube/resources.ts';
import { deliverer } from './deliver.ts';
import type { Message, Receiver } from './receivers.ts';

const NEVER = new AbortController().signal;
const NOW = Date.UTC(2026, 0, 1);
const KEY = 'a key of these tests only\n';
const MESSAGE: Message = {
  id: 'm1',
  policy: 'careful',
  notes: [
    { id: 'n', event: 'Done', plan: 'toy/ns/plan', message: 'done', at: '2026-11-20T10:00:00Z' },
  ],
};

/** Returns a function that delivers messages, with a Secret that has these values. */
function delivererWith(values: Readonly<Record<string, string>>, now = NOW) {
  const api = new MemoryApi();
  const data = Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  );
  api.put(secrets, { metadata: { name: 'chat' }, data });
  const clock = new FakeClock(now);
  return deliverer({ client: api.client, namespace: 'refit-system', environment: {}, clock });
}

const secret = { name: 'chat', key: 'url' };
const SLACK: Receiver = { name: 'chat', type: 'Slack', events: ['Done'], address: { secret } };

test('the address comes from the Secret, and the message is JSON', async () => {
  await using server = await startStubServer((_request, response) => response.end('ok'));
  const deliver = delivererWith({ url: `${server.config.server}/services/T0/B0/XYZ\n` });
  expect(await deliver(SLACK, MESSAGE, NEVER)).toBeUndefined();
  expect(server.requests).toMatchObject([
    {
      method: 'POST',
      url: '/services/T0/B0/XYZ',
      body: '{"text":"done\\nSee what was done: refit report toy/ns/plan","mrkdwn":false}',
      headers: { 'content-type': 'application/json', 'content-length': '75' },
    },
  ]);
});

test('Matrix gets the token in a header, below the path of the home server', async () => {
  await using server = await startStubServer((_request, response) => response.end('{}'));
  const matrix: Receiver = {
    name: 'room',
    type: 'Matrix',
    events: ['Done'],
    server: `${server.config.server}/base/`,
    room: '!r:example.org',
    token: { name: 'chat', key: 'token' },
  };
  expect(await delivererWith({ token: 'syt_secret' })(matrix, MESSAGE, NEVER)).toBeUndefined();
  expect(server.requests).toMatchObject([
    {
      method: 'PUT',
      url: '/base/_matrix/client/v3/rooms/!r%3Aexample.org/send/m.room.message/m1',
      headers: { authorization: 'Bearer syt_secret' },
    },
  ]);
  const wrong = await delivererWith({ token: 'two words' })(matrix, MESSAGE, NEVER);
  expect(wrong).toBe(
    'the key token of Secret refit-system/chat has characters that cannot be sent',
  );
});

function webhookAt(url: string): Receiver {
  const signingKey = { name: 'chat', key: 'signing' };
  return { name: 'records', type: 'Webhook', events: ['Done'], address: { url }, signingKey };
}

test('a webhook with a key gets signed requests: each has its time, and the same body', async () => {
  await using server = await startStubServer((_request, response) => response.end('ok'));
  const receiver = webhookAt(server.config.server);
  for (const now of [NOW, NOW + 60_500])
    expect(await delivererWith({ signing: KEY }, now)(receiver, MESSAGE, NEVER)).toBeUndefined();
  const body = JSON.stringify({ version: 1, ...MESSAGE });
  const signed = [NOW / 1000, NOW / 1000 + 60].map((seconds) => ({
    body,
    headers: {
      'idempotency-key': 'm1',
      'refit-timestamp': String(seconds),
      'refit-signature': `sha256=${createHmac('sha256', KEY).update(`${seconds}.${body}`).digest('hex')}`,
    },
  }));
  expect(server.requests).toMatchObject(signed);
});

test('without a key, nothing is signed', async () => {
  await using server = await startStubServer((_request, response) => response.end('ok'));
  const receiver = { ...webhookAt(server.config.server), signingKey: undefined } as Receiver;
  expect(await delivererWith({ signing: KEY })(receiver, MESSAGE, NEVER)).toBeUndefined();
  const names = server.requests.flatMap(({ headers }) => Object.keys(headers));
  expect(names).toContain('idempotency-key');
  expect(names.filter((name) => name.startsWith('refit-'))).toEqual([]);
});

test.each<[string, Readonly<Record<string, string>>, string]>([
  [
    'could be guessed',
    { signing: '0123456789abcde' },
    'the key signing of Secret refit-system/chat has 15 bytes; it must have at least 16',
  ],
  ['is missing', {}, 'Secret refit-system/chat has no key signing, or it is empty'],
])('if the key of the signature %s, nothing is sent', async (_what, values, problem) => {
  await using server = await startStubServer((_request, response) => response.end('ok'));
  const receiver = webhookAt(server.config.server);
  expect(await delivererWith(values)(receiver, MESSAGE, NEVER)).toBe(problem);
  expect(server.connections()).toBe(0);
});

test.each<[string, Readonly<Record<string, string>>, string]>([
  ['no key', {}, 'Secret refit-system/chat has no key url, or it is empty'],
  [
    'no URL',
    { url: 'hooks.test/very-secret' },
    'the key url of Secret refit-system/chat must be a URL that begins with http:// or https:// and contains no credentials',
  ],
  [
    'a server that is not there',
    { url: 'http://127.0.0.1:1/very-secret' },
    'it cannot be reached (ECONNREFUSED)',
  ],
])('%s is named without the address', async (_name, values, problem) => {
  expect(await delivererWith(values)(SLACK, MESSAGE, NEVER)).toBe(problem);
});

test('a Secret that is not there is named', async () => {
  const deliver = delivererWith({});
  const other: Receiver = {
    ...SLACK,
    type: 'Slack',
    address: { secret: { name: 'none', key: 'k' } },
  };
  expect(await deliver(other, MESSAGE, NEVER)).toBe('Secret refit-system/none does not exist');
});

test('an answer that is no success, a redirect included, is a problem without its text', async () => {
  await using server = await startStubServer(({ url }, response) => {
    response.writeHead(url === '/moved' ? 302 : 403, { location: '/very-secret' });
    response.end('invalid_token very-secret');
  });
  const at = (path: string): Receiver => ({
    ...SLACK,
    type: 'Slack',
    address: { url: `${server.config.server}${path}` },
  });
  const deliver = delivererWith({});
  expect(await deliver(at('/'), MESSAGE, NEVER)).toBe('it answered 403 Forbidden');
  expect(await deliver(at('/moved'), MESSAGE, NEVER)).toBe(
    'it answered 302 Found, and redirects are not followed',
  );
  expect(server.requests).toHaveLength(2);
});
