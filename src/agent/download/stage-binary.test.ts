/** Tests the download with a real server that has faults. The tests compare the bytes that the server sent. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as files from 'node:fs/promises';
import { lstat, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import type { RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type {
  DownloadServer,
  DownloadServerOptions,
} from '../../../sandbox/hosts/download-server.ts';
import { startDownloadServer } from '../../../sandbox/hosts/download-server.ts';
import { buildDownloadRequest, buildFetchTools } from '../../../test/support/builders/downloads.ts';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { SkewedClock } from '../../../test/support/clock/skewed-clock.ts';
import { keptFileUrl } from '../../signal/kept-file.ts';
import { systemClock } from '../../util/clock.ts';
import type { DownloadRequest } from './stage-binary.ts';
import { discardDownload, download } from './stage-binary.ts';

const BYTES = Buffer.from(
  Array.from({ length: 300_000 }, (_, index) => (index * 7 + (index >> 8)) % 256),
);
const SHA256 = sha256(BYTES);
/** No connection counts as stalled, however long a busy machine pauses, unless a test is about that. */
const LIMITS = { maxBytes: 1_000_000, reserveBytes: 0, totalMs: 6 * 3_600_000, stallMs: 1e9 };
const IMPATIENT = { limits: { ...LIMITS, stallMs: 60_000 } };
/** Waits of minutes take only milliseconds. Times that are compared with these waits shrink in the same way. */
const clock = new SkewedClock(systemClock, { pauses: 1 / 100 });

let directory: string;
const open: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-download-'));
  await writeFile(join(directory, 'payload'), BYTES);
});
afterEach(async () => {
  for (const close of open.splice(0)) await close();
  await rm(directory, { recursive: true });
});

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function serveFile(options: Partial<DownloadServerOptions> = {}): Promise<DownloadServer> {
  const server = await startDownloadServer({
    files: { '/k0s': join(directory, 'payload') },
    ...options,
  });
  open.push(() => server.stop());
  return server;
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function requestFor(url: string, more: Partial<DownloadRequest> = {}): DownloadRequest {
  return buildDownloadRequest(directory, {
    url,
    sha256: SHA256,
    limits: LIMITS,
    ...more,
  });
}

/** An agent passes everything that it knows about its host. Values in the request have priority. */
const OF_THE_HOST = { paths: {}, version: '0.0.0' };

async function fetchNow(
  request: DownloadRequest,
  abort = new AbortController().signal,
): Promise<void> {
  await download(request, { ...buildFetchTools({ clock, abort }), ...OF_THE_HOST });
}

/** Leaves the files of an agent that was killed: some bytes, and the record that says what they belong to. */
async function leavePart(
  request: DownloadRequest,
  bytes: Buffer,
  more: object = {},
): Promise<void> {
  await writeFile(request.paths.part, bytes);
  await writeFile(
    request.paths.record,
    JSON.stringify({ url: request.url, sha256: request.sha256, ...more }),
  );
}

const sent = ({ requests }: DownloadServer): number =>
  requests.reduce((sum, { bytesSent }) => sum + bytesSent, 0);

async function expectStaged({ staged, paths }: DownloadRequest, bytes = BYTES): Promise<void> {
  expect(sha256(await readFile(staged))).toBe(sha256(bytes));
  expect((await stat(staged)).mode & 0o777).toBe(0o755);
  await expect(stat(paths.part)).rejects.toThrow('ENOENT');
}

test('a payload is staged whole, executable and under its own name only', async () => {
  const server = await serveFile();
  const request = requestFor(`${server.url}/k0s`, { sha256: SHA256.toUpperCase() });
  await fetchNow(request);
  await expectStaged(request);
  expect(server.requests).toEqual([
    {
      node: 'worker1',
      path: '/k0s',
      from: 0,
      status: 200,
      bytesSent: BYTES.length,
      complete: true,
      ms: expect.any(Number),
    },
  ]);
});

describe('transient faults', () => {
  test('a download continues after its connection breaks twice', async () => {
    const server = await serveFile({ faults: [{ resetAfterBytes: 100_000, times: 2 }] });
    const request = requestFor(`${server.url}/k0s`);
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests).toHaveLength(3);
  });

  test.each([500, 503, 429, 408])(
    'the agent repeats a download request that is answered with %i',
    async (status) => {
      const server = await serveFile({ faults: [{ status, times: 2 }] });
      const request = requestFor(`${server.url}/k0s`);
      await fetchNow(request);
      await expectStaged(request);
      expect(server.requests).toHaveLength(3);
    },
  );

  test('stalled connections are given up and cost no byte twice', async () => {
    const server = await serveFile({ faults: [{ stallAfterBytes: 100_000, times: 2 }] });
    const request = requestFor(`${server.url}/k0s`, IMPATIENT);
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests.map(({ from }) => from)).toEqual([0, 100_000, 200_000]);
    expect(sent(server)).toBe(BYTES.length);
  });

  test('a body shorter than announced is continued', async () => {
    let asked = 0;
    const url = await serve((request, response) => {
      const from = Number(/\d+/.exec(request.headers.range ?? '0')?.[0]);
      response.writeHead(from > 0 ? 206 : 200, {
        'content-length': BYTES.length - from,
        'content-range': `bytes ${from}-${BYTES.length - 1}/${BYTES.length}`,
      });
      if (asked++ === 0) response.write(BYTES.subarray(0, 1_000), () => response.socket?.end());
      else response.end(BYTES.subarray(from));
    });
    const request = requestFor(url);
    await fetchNow(request);
    await expectStaged(request);
    expect(asked).toBe(2);
  });

  test('the agent gives up after 8 attempts and names the last error of the server', async () => {
    const server = await serveFile({ faults: [{ status: 503, times: 1_000 }] });
    await expect(fetchNow(requestFor(`${server.url}/k0s`))).rejects.toMatchObject({
      message: 'gave up after 8 attempts',
      cause: { message: expect.stringContaining('answered 503 Service Unavailable') },
    });
    expect(server.requests).toHaveLength(8);
  });

  test('progress of a download renews the number of attempts', async () => {
    const server = await serveFile({ faults: [{ stallAfterBytes: 10_000, times: 9 }] });
    const request = requestFor(`${server.url}/k0s`, { limits: { ...LIMITS, stallMs: 20_000 } });
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests).toHaveLength(10);
  });

  test('all attempts of a download together are bounded', async () => {
    const server = await serveFile({ faults: [{ stallAfterBytes: 10, times: 1_000 }] });
    const request = requestFor(`${server.url}/k0s`, { limits: { ...LIMITS, totalMs: 100 } });
    await expect(fetchNow(request)).rejects.toThrow('took too long');
  });

  test('the agent tries again after a refused connection, and gives up only after several attempts', async () => {
    const server = await serveFile();
    await server.stop();
    open.length = 0;
    await expect(fetchNow(requestFor(`${server.url}/k0s`))).rejects.toThrow('gave up');
  });
});

describe('faults for good', () => {
  test('a download with a wrong sha256 fails after one request, names both hashes and stages no file', async () => {
    const server = await serveFile({ breakFor: ['worker1'] });
    const request = requestFor(`${server.url}/k0s`);
    await expect(fetchNow(request)).rejects.toThrow(
      new RegExp(`^sha256 of the download is [0-9a-f]{64}, wanted ${SHA256}$`),
    );
    expect(server.requests).toHaveLength(1);
    expect((await stat(request.paths.part)).size).toBe(0);
    await expect(stat(request.staged)).rejects.toThrow('ENOENT');
  });

  test.each([404, 403, 410, 204])('an answer %i is final', async (status) => {
    const server = await serveFile({ faults: [{ status, times: 9 }] });
    await expect(fetchNow(requestFor(`${server.url}/k0s`))).rejects.toThrow(`answered ${status}`);
    expect(server.requests).toHaveLength(1);
  });

  test('a payload that announces too many bytes is not begun', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`, { limits: { ...LIMITS, maxBytes: 1_000 } });
    await expect(fetchNow(request)).rejects.toThrow('bigger than 1000 bytes');
    expect((await stat(request.paths.part)).size).toBe(0);
  });

  test('a payload that announces nothing ends at the bound', async () => {
    const url = await serve((_request, response) => void response.write(BYTES));
    const request = requestFor(url, { limits: { ...LIMITS, maxBytes: 70_000 } });
    await expect(fetchNow(request)).rejects.toThrow('bigger than 70000 bytes');
    expect((await stat(request.paths.part)).size).toBeLessThanOrEqual(70_000);
  });

  test('a download does not start if the disk has too little free space', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': 1e15 }).flushHeaders();
    });
    const request = requestFor(url, { limits: { ...LIMITS, maxBytes: 1e16 } });
    await expect(fetchNow(request)).rejects.toThrow(
      /has \d+ bytes free, the download needs 1000000000000000/,
    );
  });

  test('a URL that is not HTTP is refused', async () => {
    await expect(fetchNow(requestFor('file:///etc/passwd'))).rejects.toThrow(
      'cannot download from file: URLs',
    );
  });

  test('a download whose redirects lead in a circle ends after 10 of them', async () => {
    let asked = 0;
    const url = await serve((_request, response) => {
      asked++;
      response.writeHead(302, { location: '/again' }).end();
    });
    await expect(fetchNow(requestFor(url))).rejects.toThrow('more than 10 redirects');
    expect(asked).toBe(11);
  });
});

test('redirects are followed, relative ones and those to other hosts', async () => {
  const server = await serveFile();
  const url = await serve(({ url: path }, response) => {
    response
      .writeHead(path === '/' ? 301 : 307, {
        location: path === '/' ? '/next' : `${server.url}/k0s`,
      })
      .end();
  });
  const request = requestFor(`${url}/`);
  await fetchNow(request);
  await expectStaged(request);
});

describe('after a crash', () => {
  test('after a crash, the agent downloads only the missing bytes', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await leavePart(request, BYTES.subarray(0, 123_456), { validator: `"${SHA256}"` });
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests).toMatchObject([
      { from: 123_456, status: 206, bytesSent: BYTES.length - 123_456 },
    ]);
  });

  test('a whole part is staged without a request', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await leavePart(request, BYTES);
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests).toEqual([]);
  });

  test('a staged payload is not fetched again', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await fetchNow(request);
    await fetchNow(request);
    expect(server.requests).toHaveLength(1);
  });

  test("a payload that k0s's own agent staged is made executable", async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await writeFile(request.staged, BYTES, { mode: 0o600 });
    await fetchNow(request);
    expect((await stat(request.staged)).mode & 0o777).toBe(0o755);
    expect(server.requests).toEqual([]);
  });

  test('a staged payload without sha256 is not downloaded again', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`, { sha256: undefined });
    await fetchNow(request);
    await fetchNow(request);
    expect(server.requests).toHaveLength(1);
  });

  test('without sha256 an unsynced part is not trusted', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`, { sha256: undefined });
    await leavePart(request, Buffer.alloc(1_000), { validator: `"${SHA256}"` });
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests).toMatchObject([{ from: 0 }]);
  });

  test('a sealed part that was damaged is fetched again', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`, { sha256: undefined });
    await leavePart(request, Buffer.alloc(1_000), { sealed: SHA256 });
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests).toMatchObject([{ from: 0 }]);
  });

  test('a damaged part costs one whole download', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await leavePart(request, Buffer.alloc(123_456), { validator: `"${SHA256}"` });
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests.map(({ from }) => from)).toEqual([123_456, 0]);
  });

  test('a part of something else is not continued', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await leavePart({ ...request, url: 'http://elsewhere/k0s' }, BYTES.subarray(0, 1_000));
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests.map(({ from }) => from)).toEqual([0]);
  });

  test('a partial file that is longer than the payload is replaced by a new download', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await leavePart(request, Buffer.concat([BYTES, BYTES]), { validator: `"${SHA256}"` });
    await fetchNow(request);
    await expectStaged(request);
    expect(server.requests.map(({ status }) => status)).toEqual([416, 200]);
  });
});

/** Sends the first 1,000 bytes, and ends the connection once the agent has kept them. */
function breakOnceKept(response: ServerResponse, partOf: () => string): void {
  response.write(BYTES.subarray(0, 1_000));
  const isKept = async (): Promise<void> => expect((await stat(partOf())).size).toBe(1_000);
  void vi.waitFor(isKept, { timeout: 60_000 }).finally(() => response.destroy());
}

test('a payload that changed on the server is fetched from its start', async () => {
  const changed = Buffer.from(BYTES.toReversed());
  const ifRange: unknown[] = [];
  let part = '';
  const url = await serve(({ headers }, response) => {
    ifRange.push(headers['if-range']);
    const isFirst = ifRange.length === 1;
    response.writeHead(200, { 'content-length': BYTES.length, etag: isFirst ? '"one"' : '"two"' });
    if (!isFirst) return response.end(changed);
    breakOnceKept(response, () => part);
    return undefined;
  });
  const request = requestFor(url, { sha256: undefined });
  part = request.paths.part;
  await fetchNow(request);
  await expectStaged(request, changed);
  expect(ifRange).toEqual([undefined, '"one"']);
});

test('a server that continues another payload is not believed', async () => {
  let asked = 0;
  let part = '';
  const url = await serve(({ headers }, response) => {
    asked++;
    const isWhole = headers.range === undefined;
    const range = { 'content-range': `bytes 1000-${BYTES.length - 1}/${BYTES.length}` };
    response.writeHead(isWhole ? 200 : 206, { etag: `"${asked}"`, ...(isWhole ? {} : range) });
    if (asked === 1) breakOnceKept(response, () => part);
    else response.end(isWhole ? BYTES : Buffer.alloc(BYTES.length - 1_000));
  });
  const request = requestFor(url, { sha256: undefined });
  part = request.paths.part;
  await fetchNow(request);
  await expectStaged(request);
  expect(asked).toBe(3);
});

test('a cancelled download ends at once, keeps its part, and can be discarded', async () => {
  const controller = new AbortController();
  const url = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': BYTES.length }).write(BYTES.subarray(0, 1_000));
    setImmediate(() => controller.abort(new Error('another signal')));
  });
  const request = requestFor(url);
  await expect(fetchNow(request, controller.signal)).rejects.toThrow('another signal');
  await stat(request.paths.part);
  await discardDownload(request, files);
  await discardDownload(request, files);
  for (const path of [request.paths.part, request.paths.record])
    await expect(stat(path)).rejects.toThrow('ENOENT');
});

describe('symbolic links beside the binary', () => {
  test('a symbolic link in the place of the staged payload is removed, even if it leads to the right bytes', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await symlink(join(directory, 'payload'), request.staged);
    await fetchNow(request);
    await expectStaged(request);
    expect((await lstat(request.staged)).isFile()).toBe(true);
    expect(server.requests).toHaveLength(1);
  });

  test('a symbolic link in the place of the partial file is not followed', async () => {
    const server = await serveFile();
    const request = requestFor(`${server.url}/k0s`);
    await writeFile(join(directory, 'other'), 'stays');
    await symlink(join(directory, 'other'), request.paths.part);
    await expect(fetchNow(request)).rejects.toThrow('ELOOP');
    expect(await readFile(join(directory, 'other'), 'utf8')).toBe('stays');
  });
});

test('no log line shows the password or the signature in a download URL', async () => {
  const server = await serveFile({ faults: [{ status: 503 }] });
  const request = requestFor(`${server.url.replace('//', '//me:secret@')}/k0s?signature=secret`);
  const lines: string[] = [];
  await download(request, buildFetchTools({ clock, log: buildLog(lines, 'debug') }));
  expect(lines).toHaveLength(1);
  expect(lines.join('')).not.toContain('secret');
});

test('the address of a kept file leads to no request, and the host fails at once if it does not keep the file', async () => {
  const request = requestFor(keptFileUrl('v1'), {
    takeKept: async () => await Promise.resolve(false),
  });
  await expect(fetchNow(request)).rejects.toThrow(
    `the Plan expects that this host keeps the file with the sha256 ${SHA256}, but the host does not keep it: name a download in the Plan`,
  );
  await expect(stat(request.staged)).rejects.toThrow('ENOENT');
});
