/**
 * Tests requests through a proxy: plain and in a tunnel, refused, without an answer, and the
 * clean-up.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test, vi } from 'vitest';
import { startLoopbackProxy } from '../../test/agent/loopback-proxy.ts';
import { startStubServer } from '../../test/faults/stub-server.ts';
import { httpGet, TransientError } from './http-get.ts';
import { get } from './route.ts';

const NEVER = new AbortController().signal;
const BASIC = `Basic ${Buffer.from('me:a b').toString('base64')}`;

test('plain requests are made to the proxy, by their whole address; each side gets its own credentials', async () => {
  await using server = await startStubServer((_request, response) => response.end('k0s'));
  await using proxy = await startLoopbackProxy({ names: { 'mirror.example:80': server.port } });
  const environment = { HTTP_PROXY: `http://me:a%20b@${proxy.host}` };
  const url = 'http://you:secret@mirror.example/k0s?v=1';
  const { response } = await httpGet({ url, headers: { range: 'bytes=1-' }, environment }, NEVER);
  response.destroy();
  expect(proxy.asked).toEqual(['GET http://mirror.example/k0s?v=1']);
  expect(proxy.credentials).toEqual([BASIC]);
  const [{ url: path, headers } = { url: '', headers: {} }] = server.requests;
  const authorization = `Basic ${Buffer.from('you:secret').toString('base64')}`;
  expect([path, headers]).toMatchObject([
    '/k0s?v=1',
    { host: 'mirror.example', range: 'bytes=1-', authorization },
  ]);
});

test('without credentials in the URLs none are sent', async () => {
  const seen: IncomingHttpHeaders[] = [];
  const listener = createServer((request, response) => {
    seen.push(request.headers);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const environment = {
    HTTP_PROXY: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
  };
  const { response } = await httpGet(
    { url: 'http://mirror.example/k0s', headers: {}, environment },
    NEVER,
  );
  response.destroy();
  listener.close();
  expect(seen).toHaveLength(1);
  for (const name of ['authorization', 'proxy-authorization'])
    expect(seen[0]).not.toHaveProperty(name);
});

test('a tunnel that is refused is closed, also where the proxy would keep it open', async () => {
  const closed = Promise.withResolvers<void>();
  const listener = createServer().on('connect', (_request, socket) => {
    // On `end`, the other side has closed its half of the connection. This half stays open until `socket.end()`.
    socket.once('error', () => undefined).once('end', () => closed.resolve(void socket.end()));
    socket.write('HTTP/1.1 407 Who are you\r\n\r\n');
    socket.resume();
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const proxy = new URL(`http://127.0.0.1:${(listener.address() as AddressInfo).port}`);
  const asked = get({ address: new URL('https://mirror.example/k0s'), headers: {}, proxy }, NEVER);
  const refusal = { name: 'ProxyRefusal', message: 'the proxy answered 407', status: 407 };
  await expect(asked).rejects.toMatchObject(refusal);
  await closed.promise;
  listener.close();
});

test.each([
  [403, false],
  [407, false],
  [503, true],
])(
  'a proxy that refuses a tunnel with %i is worth another attempt: %s',
  async (status, isWorthIt) => {
    await using proxy = await startLoopbackProxy({ names: {}, refuses: status });
    const environment = { HTTPS_PROXY: `http://me:a%20b@${proxy.host}` };
    const asked = httpGet({ url: 'https://mirror.example/k0s', headers: {}, environment }, NEVER);
    const error: unknown = await asked.catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      message: expect.stringContaining(
        `the proxy ${proxy.host}, asked for mirror.example, answered ${status}`,
      ),
    });
    expect(error instanceof TransientError).toBe(isWorthIt);
    expect(proxy.asked).toEqual(['CONNECT mirror.example:443']);
    expect(proxy.credentials).toEqual([BASIC]);
    await vi.waitFor(() => expect(proxy.open()).toBe(0), 60_000);
  },
);

test('a proxy that says nothing is left at once with the signal, and keeps no connection', async () => {
  await using proxy = await startLoopbackProxy({ names: {}, refuses: 'no-answer' });
  const stop = new AbortController();
  const environment = { HTTPS_PROXY: proxy.host };
  const asked = httpGet(
    { url: 'https://mirror.example/k0s', headers: {}, environment },
    stop.signal,
  );
  await vi.waitFor(() => expect(proxy.open()).toBe(1), 60_000);
  stop.abort(new Error('stalled'));
  await expect(asked).rejects.toThrow(
    `no answer from mirror.example through the proxy ${proxy.host}`,
  );
  await vi.waitFor(() => expect(proxy.open()).toBe(0), 60_000);
});

test.each([
  [
    'a proxy',
    'https://mirror.example/k0s',
    { HTTPS_PROXY: 'http://me:100%@127.0.0.1:1' },
    'HTTPS_PROXY is not a proxy URL; use for example http://192.0.2.1:3128',
  ],
  ['a server', 'http://me:100%@127.0.0.1:1/k0s', {}, 'no answer from 127.0.0.1:1'],
  [
    'a server behind a proxy',
    'http://me:100%@mirror.example/k0s',
    { HTTP_PROXY: '127.0.0.1:1' },
    'no answer from mirror.example through the proxy 127.0.0.1:1',
  ],
])(
  'the password of %s that cannot be read does not become readable by asking again',
  async (_whose, url, environment, message) => {
    const error: unknown = await httpGet({ url, headers: {}, environment }, NEVER).catch(
      (caught: unknown) => caught,
    );
    expect(error).toMatchObject({ message });
    expect(error).not.toBeInstanceOf(TransientError);
  },
);

test('a proxy that is away may come back', async () => {
  const environment = { HTTP_PROXY: 'http://127.0.0.1:1' };
  const asked = httpGet({ url: 'http://mirror.example/k0s', headers: {}, environment }, NEVER);
  await expect(asked).rejects.toBeInstanceOf(TransientError);
});
