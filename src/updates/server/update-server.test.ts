/** Proves what the update server answers: both formats, the redirect, ranges, tokens, and staged releases. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { request as send } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  type Published,
  publishReleases,
  type RunningServer,
  startUpdateServer,
} from '../../../test/support/builders/update-servers.ts';
import { systemClock } from '../../util/clock.ts';
import { readIndex } from '../channel/read-index.ts';
import { redirectChannels } from '../channel/redirected-version.ts';
import type { UpdateServerOptions } from './update-server.ts';

const BYTES = Buffer.from(
  Array.from({ length: 2_500_000 }, (_, index) => (index * 7 + (index >> 8)) % 256),
);
const SHA = createHash('sha256').update(BYTES).digest('hex');
const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.37.1+k0s.0';
const OLDER: Published = { version: OLD, bytes: Buffer.from('older') };

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-serve-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
});

async function serve(
  releases: readonly Published[],
  options: Partial<UpdateServerOptions> = {},
): Promise<RunningServer> {
  await publishReleases(directory, releases);
  const server = await startUpdateServer(directory, options);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  return server;
}

const index = async (
  { url }: RunningServer,
  headers: Record<string, string> = {},
): Promise<string | number> => {
  const response = await fetch(`${url}/stable/index.yaml`, { headers });
  return response.ok ? readIndex(await response.text()).version : response.status;
};

test('a channel is served in both formats of k0s and as the redirect of system-upgrade-controller', async () => {
  const server = await serve([OLDER, { version: NEW, bytes: BYTES }]);
  const text = async (path: string): Promise<string> =>
    await (await fetch(server.url + path)).text();
  const listed = readIndex(await text('/stable/index.yaml'));
  const path = `/files/${SHA}/k0s-v1.37.1%2Bk0s.0-linux-amd64`;
  expect(listed).toEqual({
    version: NEW,
    k0s: { 'linux-amd64': { url: server.url + path, sha256: SHA } },
    airgap: {},
    withdrawn: {},
  });
  expect(readIndex(await text('/stable?clusterID=c1')).k0s).toEqual({
    'linux-amd64': { url: server.url + path },
  });
  expect(readIndex(await text('/stable/v1.36/index.yaml')).version).toBe(OLD);
  const tools = {
    clock: systemClock,
    environment: {},
    userAgent: 'suc',
    abort: new AbortController().signal,
  };
  expect(await redirectChannels(tools)(`${server.url}/stable`, 'c1', '')).toBe(NEW);
  const missing = [
    '/other/index.yaml',
    '/stable/v1.35/index.yaml',
    '/',
    '/files/x/y',
    `/files/${'0'.repeat(64)}/k0s`,
    '/../../etc/passwd',
    '/constructor/index.yaml',
  ];
  for (const each of missing) expect((await fetch(server.url + each)).status).toBe(404);
});

test.each([
  ['a part', 'bytes=10-19', 206, 'bytes 10-19/2500000', BYTES.subarray(10, 20)],
  [
    'over blocks',
    'bytes=1000000-2200000',
    206,
    'bytes 1000000-2200000/2500000',
    BYTES.subarray(1_000_000, 2_200_001),
  ],
  ['the rest', 'bytes=2499990-', 206, 'bytes 2499990-2499999/2500000', BYTES.subarray(2_499_990)],
  ['the end', 'bytes=-5', 206, 'bytes 2499995-2499999/2500000', BYTES.subarray(-5)],
  [
    'more than there is',
    'bytes=2499999-9999999',
    206,
    'bytes 2499999-2499999/2500000',
    BYTES.subarray(-1),
  ],
  ['behind the end', 'bytes=2500000-', 416, 'bytes */2500000', Buffer.alloc(0)],
  ['backwards', 'bytes=9-5', 200, undefined, BYTES],
  ['two ranges', 'bytes=0-1,4-5', 200, undefined, BYTES],
])(
  'a client gets the range that it asks for: %s',
  async (_name, range, status, contentRange, bytes) => {
    const { url } = await serve([{ version: NEW, bytes: BYTES }]);
    const response = await fetch(`${url}/files/${SHA}/k0s`, { headers: { range } });
    expect([response.status, response.headers.get('content-range') ?? undefined]).toEqual([
      status,
      contentRange,
    ]);
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
  },
);

test('a file that the client has is not sent again, and the range of another file is ignored', async () => {
  const { url } = await serve([{ version: NEW, bytes: BYTES }]);
  const get = async (path: string, headers: Record<string, string>): Promise<Response> =>
    await fetch(url + path, { headers });
  expect((await get(`/files/${SHA}/k0s`, { 'if-none-match': `"${SHA}"` })).status).toBe(304);
  expect(
    (await get(`/files/${SHA}/k0s`, { range: 'bytes=5-', 'if-range': '"other"' })).status,
  ).toBe(200);
  expect(
    (await get(`/files/${SHA}/k0s`, { range: 'bytes=5-', 'if-range': `"${SHA}"` })).status,
  ).toBe(206);
  const etag = (await get('/stable/index.yaml', {})).headers.get('etag') ?? '';
  expect((await get('/stable/index.yaml', { 'if-none-match': etag })).status).toBe(304);
  const head = await fetch(`${url}/files/${SHA}/k0s`, { method: 'HEAD' });
  expect([head.status, head.headers.get('content-length'), (await head.text()).length]).toEqual([
    200,
    '2500000',
    0,
  ]);
});

test('channels need a token of the file, which may change; a download needs none', async () => {
  const tokenFile = join(directory, 'tokens');
  await writeFile(tokenFile, 'first\nsecond\n');
  const server = await serve([{ version: NEW, bytes: BYTES }], { tokenFile });
  const by = async (token: string): Promise<string | number> =>
    await index(server, { authorization: `Bearer ${token}` });
  expect([await index(server), await by(''), await by('third'), await by('second')]).toEqual([
    401,
    401,
    401,
    NEW,
  ]);
  await writeFile(tokenFile, 'third\n');
  expect([await by('second'), await by('third')]).toEqual([401, NEW]);
  await writeFile(tokenFile, '');
  expect(await by('')).toBe(401);
  expect((await fetch(`${server.url}/files/${SHA}/k0s`)).status).toBe(200);
});

test('a token file that is missing, or without a token, is told before anything is served', async () => {
  const tokenFile = join(directory, 'tokens');
  await expect(serve([OLDER], { tokenFile })).rejects.toThrow(
    `cannot use the tokens in ${tokenFile}: ENOENT`,
  );
  await writeFile(tokenFile, '\n');
  await expect(serve([OLDER], { tokenFile })).rejects.toThrow(
    'it has no token; write one on each line',
  );
});

test('a staged release goes to its share of clusters, the same ones each time', async () => {
  const server = await serve([OLDER, { version: NEW, bytes: BYTES, percent: 30 }]);
  const clusters = Array.from({ length: 200 }, (_, each) => `kube-system:cluster-${each}`);
  const ask = async (): Promise<(string | number)[]> =>
    await Promise.all(clusters.map(async (id) => await index(server, { K0s_clusterid: id })));
  const first = await ask();
  const share = first.filter((version) => version === NEW).length / clusters.length;
  expect(share).toBeGreaterThan(0.15);
  expect(share).toBeLessThan(0.45);
  expect(await ask()).toEqual(first);
  expect(await index(server)).toBe(OLD);
  await publishReleases(directory, [OLDER, { version: NEW, bytes: BYTES, percent: 60 }]);
  const later = await ask();
  expect(later.filter((_, each) => first[each] === NEW).every((version) => version === NEW)).toBe(
    true,
  );
});

test('a release on hold waits, and one that is withdrawn says so', async () => {
  const server = await serve([OLDER, { version: NEW, bytes: BYTES, hold: true }]);
  expect(await index(server)).toBe(OLD);
  await publishReleases(directory, [
    OLDER,
    { version: NEW, bytes: BYTES, withdrawn: 'loses data' },
  ]);
  const { version, withdrawn } = readIndex(
    await (await fetch(`${server.url}/stable/index.yaml`)).text(),
  );
  expect([version, withdrawn]).toEqual([OLD, { [NEW]: 'loses data' }]);
});

test('a running Plan gets the files of a release that the bundle has dropped', async () => {
  const { url } = await serve([OLDER, { version: NEW, bytes: BYTES }]);
  await publishReleases(directory, [OLDER]);
  const response = await fetch(`${url}/files/${SHA}/k0s`);
  expect(response.status).toBe(200);
  expect(Buffer.from(await response.arrayBuffer()).equals(BYTES)).toBe(true);
});

test.each([
  ['evil.example.com', {}, 421],
  ['updates.example.com', { hosts: ['updates.example.com'] }, 200],
  ['evil.example.com', { url: 'https://updates.example.com' }, 200],
])(
  'a client that asks by the name %s of a server with %j gets %i',
  async (host, options, status) => {
    const { url } = await serve([OLDER], options);
    const asked = await new Promise<number | undefined>((resolve, reject) =>
      send(`${url}/stable/index.yaml`, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end(),
    );
    expect(asked).toBe(status);
  },
);

test('a Host that is no name of a host decides no URL', async () => {
  const { url } = await serve([OLDER]);
  const status = await new Promise((resolve, reject) => {
    const asked = send(
      `${url}/stable/index.yaml`,
      { headers: { host: 'evil"/><x' } },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    asked.once('error', reject).end();
  });
  expect(status).toBe(400);
});

test('every answer of the update server is logged and counted', async () => {
  const server = await serve([OLDER]);
  await index(server, { 'X-SUC-Cluster-ID': 'c1' });
  await fetch(`${server.url}/none`, { method: 'POST' });
  expect(server.requests).toMatchObject([
    { method: 'GET', path: '/stable/index.yaml', status: 200, cluster: 'c1' },
    { method: 'POST', path: '/none', status: 405 },
  ]);
  const { body } = await server.metrics.expose();
  expect(body).toContain('refit_served_requests_total{code="200"} 1');
  expect(body).toMatch(/refit_served_bytes_total [1-9]/);
});

test('a link out of the folder of files is not followed', async () => {
  const server = await serve([OLDER]);
  const outside = await mkdtemp(join(tmpdir(), 'refit-outside-'));
  onTestFinished(async () => await rm(outside, { recursive: true }));
  await writeFile(join(outside, 'secret'), 'secret');
  const files = join(directory, 'files');
  await mkdir(files, { recursive: true });
  const linked = 'a'.repeat(64);
  const absent = 'b'.repeat(64);
  await symlink(join(outside, 'secret'), join(files, linked));
  for (const hash of [linked, absent])
    expect((await fetch(`${server.url}/files/${hash}/x`)).status).toBe(404);
});
