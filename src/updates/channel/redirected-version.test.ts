/** Proves how a channel is read: from a redirect or from the URL itself, with a timeout. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { redirectChannels, versionIn } from './redirected-version.ts';

const answer = (statusCode: number, location?: string): Parameters<typeof versionIn>[1] => ({
  statusCode,
  statusMessage: 'Some Words',
  httpVersion: '1.1',
  headers: location === undefined ? {} : { location },
});

test.each([
  [
    'a redirect',
    'https://example.com/stable',
    answer(302, 'https://other.example.com/tag/v1.2.3%2Bk3s1'),
    'v1.2.3+k3s1',
  ],
  ['a redirect to a path', 'https://example.com/a/stable', answer(302, '/tag/v1/'), 'v1'],
  ['a redirect beside itself', 'https://example.com/a/stable', answer(302, 'v2?x=y'), 'v2'],
  ['a redirect to the root', 'https://example.com/stable', answer(302, '/'), '/'],
  ['a page', 'https://example.com/channels/v1.2.3', answer(200), 'v1.2.3'],
  ['a page with a query', 'https://example.com/stable?x=y', answer(200), 'stable?x=y'],
  ['a choice of pages', 'https://example.com/stable/', answer(300), 'stable'],
])('the version of a channel is found if its answer is %s', (_name, channel, response, version) => {
  expect(versionIn(channel, response)).toBe(version);
});

test.each([
  ['nothing there', answer(404), 'unexpected response: HTTP/1.1 404 Some Words'],
  ['a server in trouble', answer(503), 'unexpected response: HTTP/1.1 503 Some Words'],
  ['a redirect to nowhere', answer(302), '302 response missing Location header'],
])('a channel has no version if its answer is %s', (_name, response, message) => {
  expect(() => versionIn('https://example.com/stable', response)).toThrow(message);
});

async function serve(
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/stable`;
}

function channels(clock = new FakeClock(0)): ReturnType<typeof redirectChannels> {
  return redirectChannels({
    clock,
    environment: {},
    userAgent: 'suc',
    abort: new AbortController().signal,
  });
}

test('the question names the cluster, and the version where one is known, in the letters of the original', async () => {
  const questions: string[][] = [];
  const channel = await serve((request, response) => {
    questions.push(request.rawHeaders.filter((text) => /suc|agent|^uid|^v1$/i.test(text)));
    response.writeHead(302, { location: '/v2' }).end();
  });
  const asked = channels();
  expect(await asked(channel, 'uid-1', '')).toBe('v2');
  expect(await asked(channel, 'uid-1', 'v1')).toBe('v2');
  expect(questions).toEqual([
    ['user-agent', 'suc', 'X-SUC-Cluster-ID', 'uid-1'],
    ['user-agent', 'suc', 'X-SUC-Cluster-ID', 'uid-1', 'X-SUC-Latest-Version', 'v1'],
  ]);
});

test('an answer that has not changed need not be sent again; a 304 that nobody asked for is one as of the original', async () => {
  const known: (string | undefined)[] = [];
  const channel = await serve(({ headers }, response) => {
    known.push(headers['if-none-match']);
    if (known.length === 2 || known.length === 5) response.writeHead(304).end();
    else if (known.length === 3) response.writeHead(503).end();
    else
      response.writeHead(302, { location: '/v2', ...(known.length < 4 && { etag: '"a"' }) }).end();
  });
  const asked = channels();
  const ask = async (): Promise<string> => await asked(channel, 'uid', '');
  expect([await ask(), await ask()]).toEqual(['v2', 'v2']);
  await expect(ask()).rejects.toThrow('unexpected response: HTTP/1.1 503');
  expect([await ask(), await ask()]).toEqual(['v2', 'stable']);
  expect(known).toEqual([undefined, '"a"', '"a"', '"a"', undefined]);
});

test.each([301, 303, 307, 308])(
  'a redirect with status %i leads to a new address of the channel, and never gives a version',
  async (status) => {
    const questions: string[] = [];
    const channel = await serve(({ url, headers }, response) => {
      questions.push(`${url} ${String(headers['x-suc-cluster-id'])}`);
      if (url === '/stable') response.writeHead(status, { location: '/moved/301' }).end();
      else response.writeHead(302, { location: '/tag/v3' }).end();
    });
    expect(await channels()(channel, 'uid', '')).toBe('v3');
    expect(questions).toEqual(['/stable uid', '/moved/301 uid']);
  },
);

test.each<[string, string | undefined, string]>([
  [
    'leads in a circle',
    '/stable',
    'more than 5 redirects; use the URL that the channel has moved to',
  ],
  ['leads nowhere', undefined, '301 response missing Location header'],
])('a channel that has moved and %s has no version', async (_name, location, message) => {
  const channel = await serve((_request, response) => {
    response.writeHead(301, location === undefined ? {} : { location }).end();
  });
  await expect(channels()(channel, 'uid', '')).rejects.toThrow(message);
});

test('a silent server is given up', async () => {
  const clock = new FakeClock(0);
  let isAsked = false;
  const channel = await serve(() => {
    isAsked = true;
  });
  const answer = expect(channels(clock)(channel, 'uid', '')).rejects.toThrow(
    'did not finish its answer within 10 s',
  );
  await vi.waitFor(() => expect(isAsked).toBe(true), 60_000);
  await clock.advance(10_000);
  await answer;
});
