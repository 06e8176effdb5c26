/**
 * Tests how the answers of an update server are handled: a hostile answer leads to an error of one sentence, and the
 * server does not send an answer again if the client already has it.
 */
import { expect, test } from 'vitest';
import { startStubServer } from '../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { type Clock, systemClock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { askServer, type ServerAnswer, type ServerQuestion } from './ask-server.ts';

const NEVER = new AbortController().signal;
type Listener = Parameters<typeof startStubServer>[0];

async function ask(question: ServerQuestion, clock: Clock = systemClock): Promise<ServerAnswer> {
  return await askServer(question, {
    clock,
    environment: {},
    userAgent: 'refit-test',
    abort: NEVER,
  });
}

async function problemWith(listener: Listener): Promise<string> {
  await using server = await startStubServer(listener);
  const answer = await ask({ url: `${server.config.server}/stable/index.yaml` }).catch(messageOf);
  return typeof answer === 'string' ? answer.replaceAll(String(server.port), 'PORT') : 'an answer';
}

test.each<readonly [string, Listener, string]>([
  [
    'no such file',
    (_, response) => response.writeHead(404).end(),
    '127.0.0.1:PORT answered 404 Not Found',
  ],
  [
    'a part of the index only',
    (_, response) => response.writeHead(206).end('x'),
    '127.0.0.1:PORT answered 206 instead of the index',
  ],
  [
    'status 304, although nobody asked for that',
    (_, response) => response.writeHead(304).end(),
    'answered 304 instead of the index',
  ],
  [
    'too many bytes',
    (_, response) => response.end('x'.repeat(64 * 1024 + 1)),
    'is larger than 64 KiB',
  ],
  [
    'redirects that lead in a circle',
    ({ url }, response) => response.writeHead(302, { location: url }).end(),
    'more than 10',
  ],
  [
    'fewer bytes than it announces',
    (_, response) => response.writeHead(200, { 'content-length': 9 }).end('x'),
    'the download was interrupted',
  ],
])('the problem is named if the answer of a server has %s', async (_name, listener, problem) => {
  expect(await problemWith(listener)).toContain(problem);
});

test.each(['x', ''])(
  'Refit ends a request after 10 s if the update server sends only %j each second',
  async (each) => {
    const clock = new FakeClock();
    await using server = await startStubServer((_, response) => {
      const next = (): void => void clock.schedule(1_000, () => response.write(each) && next());
      response.writeHead(200, { 'content-length': 1_000 });
      next();
    });
    const asked = clock.runUntil(ask({ url: `${server.config.server}/` }, clock));
    await expect(asked).rejects.toThrow('the update server did not finish its answer within 10 s');
    expect(clock.monotonic()).toBe(10_000);
  },
);

test('an unreachable server is named, without password and token', async () => {
  const url = 'http://me:secret@127.0.0.1:1/stable/index.yaml';
  const problem = await ask({ url, secretHeaders: { authorization: 'Bearer t0k3n' } }).catch(
    messageOf,
  );
  expect(problem).toContain('no answer from 127.0.0.1:1');
  expect(problem).not.toMatch(/secret|t0k3n/);
});

test('an index that is known is not sent again', async () => {
  await using server = await startStubServer(({ headers }, response) => {
    if (headers['if-none-match'] === '"1"') response.writeHead(304).end();
    else response.writeHead(200, { etag: '"1"' }).end('version: v1');
  });
  const url = `${server.config.server}/`;
  const first = await ask({ url });
  expect(first).toEqual({ text: 'version: v1', etag: '"1"' });
  expect(await ask({ url, known: '"1"' })).toEqual({ text: undefined, etag: '"1"' });
});

test('a token is told to the host of the URL, and to no host behind a redirect', async () => {
  await using other = await startStubServer((_, response) => response.end('version: v1'));
  await using server = await startStubServer(({ url }, response) => {
    const location = url === '/' ? '/moved' : `${other.config.server}/index.yaml`;
    response.writeHead(302, { location }).end();
  });
  const question = { url: `${server.config.server}/`, headers: { K0s_arch: 'amd64' } };
  await ask({ ...question, secretHeaders: { authorization: 'Bearer t0k3n' } });
  const tokens = [...server.requests, ...other.requests].map(
    ({ headers }) => headers['authorization'],
  );
  expect(tokens).toEqual(['Bearer t0k3n', 'Bearer t0k3n', undefined]);
  expect(other.requests[0]?.headers).toMatchObject({
    k0s_arch: 'amd64',
    'user-agent': 'refit-test',
  });
});
