/** Shows what is found out of downloads on a real HTTP server, whatever that server knows of HEAD and ranges. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildRollout } from '../../../test/builders/rollouts.ts';
import { buildStage } from '../../../test/builders/stages.ts';
import { type Download, probeDownloads } from './findings.ts';

const BODY = 'x'.repeat(5000);
const asked: string[] = [];
let server: Server;
let origin = '';

/** By path: what is answered to HEAD, and to GET. */
const ANSWERS: Readonly<Record<string, (response: ServerResponse, method: string, range: string) => void>> = {
  '/plain': (response) => response.writeHead(200, { 'content-length': BODY.length }).end(BODY),
  '/ranges': (response, method, range) =>
    method === 'GET' && range === 'bytes=0-0'
      ? response.writeHead(206, { 'content-range': `bytes 0-0/${BODY.length}` }).end('x')
      : response.writeHead(405).end(),
  '/no-ranges': (response, method) =>
    method === 'GET'
      ? response.writeHead(200, { 'content-length': BODY.length }).end(BODY)
      : response.writeHead(501).end(),
  '/unknown-size': (response) => response.writeHead(200).end(BODY),
  '/moved': (response) => response.writeHead(302, { location: '/plain' }).end(),
  '/none': (response) => response.writeHead(404).end(),
};

beforeAll(async () => {
  server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    asked.push(`${method} ${url}`);
    ANSWERS[url]?.(response, method, headers.range ?? '');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

async function probe(...urls: readonly string[]): Promise<readonly Download[]> {
  const payloads = Object.fromEntries(urls.map((url, index) => [`linux-${index}`, { url }]));
  const { signal: abort } = new AbortController();
  return await probeDownloads(buildRollout([buildStage('worker', ['w1'], { payloads })]), { fetch, abort });
}

test.each<[string, Partial<Download>]>([
  ['/plain', { reachable: true, bytes: 5000 }],
  ['/ranges', { reachable: true, bytes: 5000 }],
  ['/no-ranges', { reachable: true, bytes: 5000 }],
  ['/unknown-size', { reachable: true }],
  ['/moved', { reachable: true, bytes: 5000 }],
  ['/none', { reachable: false, problem: 'answered 404' }],
])('%s', async (path, found) => {
  const [{ reachable, bytes, problem } = {}] = await probe(origin + path);
  expect({ reachable, bytes, problem }).toEqual({ bytes: undefined, problem: undefined, ...found });
});

test('a server that is not there, and an address that is none, hold up nobody else', async () => {
  const [gone, bad, good] = await probe('http://127.0.0.1:1/k0s', 'http://', `${origin}/plain`);
  expect([gone?.reachable, bad?.reachable, good?.reachable]).toEqual([false, false, true]);
  expect(gone?.problem).not.toBe('');
});

test('what several commands and roles want is asked for once; what has no hash is told', async () => {
  const [url, before] = [`${origin}/plain`, asked.length];
  const payloads = { 'linux-amd64': { url, sha256: 'ab' } };
  const stages = [
    buildStage('controller', ['c1'], { payloads }),
    buildStage('worker', ['w1'], { payloads }),
    buildStage('worker', ['w2'], { payloads: { 'linux-amd64': { url } } }),
  ];
  const found = await probeDownloads(buildRollout(stages), { fetch, abort: new AbortController().signal });
  expect(found.map(({ verified }) => verified)).toEqual([true, false]);
  expect(asked.slice(before)).toEqual(['HEAD /plain', 'HEAD /plain']);
});
