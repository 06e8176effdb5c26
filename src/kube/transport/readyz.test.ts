/** Shows which server is asked for `/readyz`, and that no other one ever answers for it. */
import { expect, test } from 'vitest';
import { startStubServer } from '../../../test/faults/stub-server.ts';
import { askReadyz } from './http-client.ts';

test.each([200, 500])('the answer %i of the address at the port of the connection', async (status) => {
  await using server = await startStubServer((_request, response) => response.writeHead(status).end());
  expect(await askReadyz(server.config, '127.0.0.1', { timeoutMs: 5_000 })).toBe(status);
  expect(server.requests.map(({ url }) => url)).toEqual(['/readyz']);
});

test('the credentials are those of the connection, another port may be named', async () => {
  await using server = await startStubServer((_request, response) => response.writeHead(200).end());
  const config = { ...server.config, server: 'http://127.0.0.9:1/prefix', user: { token: 't' } };
  expect(await askReadyz(config, '127.0.0.1', { port: server.port, timeoutMs: 5_000 })).toBe(200);
  expect(server.requests[0]?.headers.authorization).toBe('Bearer t');
});

test.each(['', ' ', '999.999.1.1', 'a/b', 'user@127.0.0.1', '127.0.0.1?', ':', 'fe80::1%eth0'])(
  'what is no address is not asked, nor is anybody in its place: "%s"',
  async (host) => {
    await using server = await startStubServer((_request, response) => response.writeHead(200).end());
    await expect(askReadyz(server.config, host, { timeoutMs: 5_000 })).rejects.toThrow('is not the address');
    expect(server.requests).toEqual([]);
  },
);

test('a server that takes the question and stays silent is none that answers, once its time is over', async () => {
  await using server = await startStubServer(() => undefined);
  await expect(askReadyz(server.config, '127.0.0.1', { timeoutMs: 500 })).rejects.toThrow('/readyz');
  expect(server.requests).toHaveLength(1);
});
