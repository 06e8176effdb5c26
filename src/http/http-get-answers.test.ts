/**
 * Tests redirects, secrets, refusals and stalls of one GET, over plain http and with a clock that
 * the test moves.
 */
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { chunksOf, type Get, httpGet, stallGuard, TransientError } from './http-get.ts';

type Reply = (response: ServerResponse, request: IncomingMessage) => void;

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function serve(
  reply: Reply,
): Promise<{ origin: string; host: string; asked: IncomingHttpHeaders[] }> {
  const asked: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    asked.push(request.headers);
    reply(response, request);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin: `http://${host}`, host, asked };
}

async function ask(url: string, more: Partial<Get> = {}): Promise<number | undefined> {
  const { response } = await httpGet(
    { url, headers: {}, environment: {}, ...more },
    new AbortController().signal,
  );
  response.destroy();
  return response.statusCode;
}

async function failureOf(url: string, more: Partial<Get> = {}): Promise<Error> {
  const error: unknown = await ask(url, more).catch((thrown: unknown) => thrown);
  if (!(error instanceof Error)) throw new Error(`no failure: ${String(error)}`);
  return error;
}

const to =
  (location: string, status = 302): Reply =>
  (response) =>
    response.writeHead(status, { location }).end();

test('secrets go to the host of the URL only, also within its redirects, and to no other', async () => {
  const other = await serve((response) => response.end());
  const own = await serve((response, { url }) =>
    (url === '/' ? to('/again') : to(`${other.origin}/k0s`))(response, {} as never),
  );
  await ask(own.origin, {
    headers: { 'user-agent': 'refit' },
    secretHeaders: { authorization: 'Bearer x' },
  });
  expect(own.asked.map(({ authorization }) => authorization)).toEqual(['Bearer x', 'Bearer x']);
  expect(other.asked).toMatchObject([{ 'user-agent': 'refit' }]);
  expect(other.asked[0]).not.toHaveProperty('authorization');
});

test('the body of a redirect is not waited for', async () => {
  const closed = Promise.withResolvers<void>();
  const { origin } = await serve((response, { url }) => {
    if (url !== '/') return void response.end();
    response.once('close', () => closed.resolve());
    response.writeHead(302, { location: '/next' }).write('endless');
  });
  expect(await ask(origin)).toBe(200);
  await closed.promise;
});

test('a redirect without an address is final', async () => {
  const { origin, host } = await serve((response) => response.writeHead(302).end());
  const error = await failureOf(origin);
  expect([error.message, error instanceof TransientError]).toEqual([
    `${host} redirects without a Location header`,
    false,
  ]);
});

test('a refusal says who led there', async () => {
  const { origin, host } = await serve(to('/next'));
  const refuses = ({ pathname }: URL): string | undefined =>
    pathname === '/next' ? 'not allowed' : undefined;
  expect((await failureOf(origin, { refuses })).message).toBe(
    `the address comes from a redirect of ${host}: not allowed`,
  );
  expect((await failureOf(`${origin}/next`, { refuses })).message).toBe(
    'the address comes from the plan: not allowed',
  );
  const source = 'the policy';
  expect((await failureOf(`${origin}/next`, { refuses, source })).message).toBe(
    'the address comes from the policy: not allowed',
  );
});

test.each<[number, string, boolean]>([
  [404, '404 Not Found', false],
  [599, '599', true],
  [425, '425 Too Early', true],
])('an answer %i is told with its name, if it has one', async (status, words, isTransient) => {
  const { origin, host } = await serve((response) => response.writeHead(status).end());
  const error = await failureOf(origin);
  expect([error.message, error instanceof TransientError]).toEqual([
    `${host} answered ${words}`,
    isTransient,
  ]);
  expect(error.name).toBe(isTransient ? 'TransientError' : 'AnswerRefusal');
  if (!isTransient) expect(error).toMatchObject({ status });
});

test('a server that hangs up is worth a retry, and the cause is kept', async () => {
  const { origin, host } = await serve((response) => response.destroy());
  const error = await failureOf(origin);
  expect(error).toMatchObject({
    name: 'TransientError',
    message: `no answer from ${host}`,
    cause: { code: 'ECONNRESET' },
  });
});

test('a URL that cannot be asked for is final, and the cause is kept', async () => {
  const error = await failureOf('http://127.0.0.1:1/', { headers: { 'bad header': 'x' } });
  expect(error).toMatchObject({
    name: 'Error',
    message: 'no answer from 127.0.0.1:1',
    cause: { name: 'TypeError' },
  });
});

test('a body that breaks off is worth a retry, and the cause is kept', async () => {
  const { origin } = await serve((response) => {
    response.writeHead(200, { 'content-length': '10' });
    response.write('x', () => response.destroy());
  });
  const { response } = await httpGet(
    { url: origin, headers: {}, environment: {} },
    new AbortController().signal,
  );
  const read = async (): Promise<void> => {
    for await (const chunk of chunksOf(response)) expect(chunk).toBeInstanceOf(Buffer);
  };
  await expect(read()).rejects.toMatchObject({
    name: 'TransientError',
    message: 'the download was interrupted',
    cause: { code: 'ECONNRESET' },
  });
});

function guarded(limits: { stallMs: number; remainingMs: number }) {
  const clock = new FakeClock();
  const parent = new AbortController();
  return {
    clock,
    parent,
    guard: stallGuard(limits.stallMs, limits.remainingMs, clock, parent.signal),
  };
}

test('a stall counts from the last byte, and is worth a retry', async () => {
  const { clock, guard } = guarded({ stallMs: 2_000, remainingMs: 60_000 });
  await clock.advance(1_999);
  guard.touch();
  await clock.advance(1_999);
  expect(guard.abort.aborted).toBe(false);
  await clock.advance(1);
  expect(guard.abort.reason).toMatchObject({
    name: 'TransientError',
    message: 'received nothing for 2 s',
  });
});

test('connecting counts as well', async () => {
  const { clock, guard } = guarded({ stallMs: 2_000, remainingMs: 60_000 });
  await clock.advance(2_000);
  expect(guard.abort.aborted).toBe(true);
});

test('the whole time is bounded, and that is final', async () => {
  const { clock, guard } = guarded({ stallMs: 2_000, remainingMs: 1_500 });
  await clock.advance(1_500);
  expect(guard.abort.reason).toMatchObject({
    name: 'Error',
    message: 'the download took too long',
  });
});

test('a guard ends with its parent, and leaves no timer behind', () => {
  const { clock, parent, guard } = guarded({ stallMs: 2_000, remainingMs: 1_500 });
  guard.touch();
  expect(clock.pending).toBe(2);
  guard[Symbol.dispose]();
  expect(clock.pending).toBe(0);
  parent.abort(new Error('stop'));
  expect(guard.abort.reason).toMatchObject({ message: 'stop' });
});
