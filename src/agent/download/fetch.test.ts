/** Tests what a download requests from a real server, which answers continue the download, and what ends it. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SkewedClock } from '../../../test/support/clock/skewed-clock.ts';
import { systemClock } from '../../util/clock.ts';
import { jsonLogger } from '../../util/log.ts';
import { type DownloadLimits, type FetchRequest, fetchVerified, type Inspect } from './fetch.ts';
import { openPartial } from './partial-file.ts';

const BODY = Buffer.from('0123456789');
const HASH = createHash('sha256').update(BODY).digest('hex');
/** Pauses of seconds take only milliseconds. No time limit ends a test, however busy the machine is. */
const LIMITS: DownloadLimits = { maxBytes: 10, reserveBytes: 0, totalMs: 1e9, stallMs: 1e9 };

type Reply = (response: ServerResponse, request: IncomingMessage) => void;

let directory: string;
let asked: IncomingHttpHeaders[];
let lines: Record<string, unknown>[];
let stop: (() => Promise<unknown>)[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-fetch-'));
  asked = [];
  lines = [];
  stop = [];
});
afterEach(async () => {
  for (const end of stop) await end();
  await rm(directory, { recursive: true });
});

/** Sends the replies in order, and repeats the last reply. */
async function serve(...replies: [Reply, ...Reply[]]): Promise<string> {
  const server = createServer((request, response) => {
    const reply = replies[Math.min(asked.length, replies.length - 1)];
    asked.push(request.headers);
    reply?.(response, request);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stop.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/k0s`;
}

const whole =
  (headers: Record<string, string> = {}): Reply =>
  (response) =>
    response.writeHead(200, { 'content-length': '10', ...headers }).end(BODY);
/**
 * Closes the connection when the part file has this number of bytes. If the connection were closed earlier, bytes in
 * transit would be lost.
 */
const broken =
  (bytes: number, headers: Record<string, string> = {}): Reply =>
  (response) => {
    response.writeHead(200, { 'content-length': '10', ...headers });
    breakOff(response, 0, bytes);
  };
function breakOff(response: ServerResponse, from: number, to: number): void {
  const end = (): void => {
    if (response.destroyed || statSync(join(directory, 'part')).size >= to) response.destroy();
    else setImmediate(end);
  };
  response.write(BODY.subarray(from, to), end);
}
const rest =
  (from: number, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response
      .writeHead(206, {
        'content-range': `bytes ${from}-9/10`,
        'content-length': String(10 - from),
        ...headers,
      })
      .end(BODY.subarray(from));
const status =
  (code: number, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response.writeHead(code, headers).end();

interface Asked extends Partial<Omit<FetchRequest, 'limits' | 'paths' | 'url'>> {
  readonly limits?: Partial<DownloadLimits>;
  readonly inspect?: (validator: string | undefined) => Awaited<ReturnType<Inspect>>;
}

async function fetchFrom(url: string, { limits, inspect, ...more }: Asked = {}) {
  const paths = { part: join(directory, 'part'), record: join(directory, 'record.json') };
  const request = {
    url,
    sha256: HASH,
    paths,
    userAgent: 'refit/1',
    limits: { ...LIMITS, ...limits },
    ...more,
  };
  await using part = await openPartial({ url, sha256: request.sha256 }, paths, files);
  const tools = {
    clock: new SkewedClock(systemClock, { pauses: 1 / 1000 }),
    random: () => 1,
    log: jsonLogger(
      (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
      () => 0,
      'debug',
    ),
    abort: new AbortController().signal,
    files,
    environment: {},
  };
  const look = inspect ?? (() => ({ isHere: false }));
  const answered: Inspect = async (_answer, validator) => await Promise.resolve(look(validator));
  const outcome = await fetchVerified({ ...request, ...tools, part, inspect: answered });
  return { outcome, text: await readFile(paths.part, 'utf8'), origin: part.origin };
}

/** Leaves the files of an agent that was killed. */
async function leave(url: string, bytes: string, more: object = {}): Promise<void> {
  await writeFile(join(directory, 'part'), bytes);
  await writeFile(join(directory, 'record.json'), JSON.stringify({ url, sha256: HASH, ...more }));
}

const DATE = 'Fri, 20 Nov 2026 08:00:00 GMT';

test('a first request says who asks, wants the bytes as they are, and has no condition', async () => {
  const url = await serve(whole());
  expect(await fetchFrom(url)).toMatchObject({ outcome: 'fetched', text: '0123456789' });
  expect(asked).toHaveLength(1);
  expect(asked[0]).toMatchObject({ 'user-agent': 'refit/1', 'accept-encoding': 'identity' });
  for (const name of ['range', 'if-range', 'if-none-match', 'if-modified-since'])
    expect(asked[0]).not.toHaveProperty(name);
});

test.each<[string, Record<string, string>, string | undefined]>([
  ['a strong entity tag', { etag: '"a"', 'last-modified': DATE }, '"a"'],
  ['a weak one, and a date', { etag: 'W/"a"', 'last-modified': DATE }, DATE],
  ['a date', { 'last-modified': DATE }, DATE],
  ['a weak one alone', { etag: 'W/"a"' }, undefined],
])('what continues is asked for under a condition: %s', async (_name, headers, validator) => {
  const url = await serve(broken(4, headers), rest(4, headers));
  expect(await fetchFrom(url)).toMatchObject({ outcome: 'fetched', text: '0123456789' });
  expect(asked[1]?.range).toBe('bytes=4-');
  expect(asked[1]?.['if-range']).toBe(validator);
});

test.each([
  ['"a"', 'if-none-match'],
  [DATE, 'if-modified-since'],
])('a copy that is here is not sent again: %s', async (unless, header) => {
  const url = await serve(status(304));
  expect((await fetchFrom(url, { unless })).outcome).toBe('here');
  expect(asked[0]?.[header]).toBe(unless);
});

test('a payload that its head shows to be here is not read, and its validator is what decides', async () => {
  const url = await serve(whole({ etag: '"a"' }));
  const seen: (string | undefined)[] = [];
  const { outcome, text, origin } = await fetchFrom(url, {
    inspect: (validator) => {
      seen.push(validator);
      return { isHere: true };
    },
  });
  expect([outcome, text, seen]).toEqual(['here', '', ['"a"']]);
  expect(origin).toEqual({ url, sha256: HASH });
});

test('the origin of the bytes is recorded before them', async () => {
  const url = await serve(whole({ etag: '"a"' }));
  const { origin } = await fetchFrom(url, { inspect: () => ({ isHere: false, name: 'b.tar' }) });
  expect(origin).toEqual({ url, sha256: HASH, validator: '"a"', name: 'b.tar' });
});

test.each<[string, Reply, string]>([
  [
    'at another byte of the same version',
    rest(3, { etag: '"a"' }),
    'the server continued with the bytes of another file',
  ],
  ['at another byte', rest(3), 'the server continued with the bytes of another file'],
  [
    'of another version',
    rest(4, { etag: '"b"' }),
    'the server continued with the bytes of another file',
  ],
  [
    'without saying where',
    (response) => response.writeHead(206).end('x'),
    'the server continued with the bytes of another file',
  ],
  [
    'with nothing, as it is shorter now',
    status(416, { 'content-range': 'bytes */3' }),
    'is now shorter',
  ],
])(
  'an answer that continues %s is not taken, and the payload is fetched from its start',
  async (_name, reply, reason) => {
    const url = await serve(reply, whole());
    await leave(url, '0123', { validator: '"a"' });
    expect(await fetchFrom(url)).toMatchObject({ outcome: 'fetched', text: '0123456789' });
    expect(asked.map(({ range }) => range)).toEqual(['bytes=4-', undefined]);
    expect(lines[0]).toMatchObject({
      msg: 'the download is retried',
      host: new URL(url).host,
      waitMs: expect.any(Number) as number,
    });
    expect(lines[0]?.['reason']).toContain(reason);
  },
);

test('a continuation whose version nobody noted before is taken', async () => {
  const url = await serve(rest(4, { etag: '"a"' }));
  await leave(url, '0123');
  expect(await fetchFrom(url)).toMatchObject({ outcome: 'fetched', text: '0123456789' });
  expect(asked).toHaveLength(1);
});

test.each([
  ['without a hash', undefined],
  ['with one', HASH],
])(
  'an answer with less than the rest that was asked for is continued: %s',
  async (_name, sha256) => {
    const etag = '"a"';
    const piece =
      (from: number, to: number): Reply =>
      (response) =>
        response
          .writeHead(206, {
            etag,
            'content-range': `bytes ${from}-${to - 1}/10`,
            'content-length': to - from,
          })
          .end(BODY.subarray(from, to));
    const url = await serve(
      broken(4, { etag }),
      piece(4, 6),
      piece(6, 9),
      piece(9, 10),
      status(404),
    );
    expect(await fetchFrom(url, { sha256 })).toMatchObject({
      outcome: 'fetched',
      text: '0123456789',
    });
    expect(asked.map(({ range }) => range)).toEqual([
      undefined,
      'bytes=4-',
      'bytes=6-',
      'bytes=9-',
    ]);
  },
);

test('a whole part, of which the server has nothing more, is whole', async () => {
  const url = await serve(status(416, { 'content-range': 'bytes */10' }));
  await leave(url, '0123456789');
  expect(await fetchFrom(url)).toMatchObject({ outcome: 'fetched', text: '0123456789' });
});

test('a wrong hash after a continuation may be the fault of the continuation: it is fetched once more', async () => {
  const url = await serve(rest(4), whole());
  await leave(url, 'abcd');
  expect(await fetchFrom(url)).toMatchObject({ outcome: 'fetched', text: '0123456789' });
  expect(lines).toEqual([
    expect.objectContaining({
      level: 'warn',
      msg: 'a resumed download has the wrong sha256: starting again',
      host: new URL(url).host,
    }),
  ]);
});

test('a wrong hash three times is final, though each answer was cut', async () => {
  const wrong = 'f'.repeat(64);
  const url = await serve(broken(4), rest(4), broken(4), rest(4), broken(4), rest(4), status(404));
  await expect(fetchFrom(url, { sha256: wrong })).rejects.toThrow(
    `sha256 of the download is ${HASH}, wanted ${wrong}`,
  );
  expect(asked).toHaveLength(6);
});

test('a download with a wrong sha256 fails after one request, and its bytes are deleted', async () => {
  const wrong = 'f'.repeat(64);
  const url = await serve(whole());
  await expect(fetchFrom(url, { sha256: wrong })).rejects.toThrow(
    `sha256 of the download is ${HASH}, wanted ${wrong}`,
  );
  expect(await readFile(join(directory, 'part'), 'utf8')).toBe('');
  expect(asked).toHaveLength(1);
});

test('a hash in capitals is the same hash', async () => {
  const url = await serve(whole());
  expect((await fetchFrom(url, { sha256: HASH.toUpperCase() })).outcome).toBe('fetched');
});

test('without a hash nothing of an earlier process is continued', async () => {
  const url = await serve(whole());
  await writeFile(join(directory, 'part'), '0123');
  await writeFile(join(directory, 'record.json'), JSON.stringify({ url, sealed: HASH }));
  expect(await fetchFrom(url, { sha256: undefined })).toMatchObject({ text: '0123456789' });
  expect(asked[0]).not.toHaveProperty('range');
});

test.each<[string, [Reply, ...Reply[]], string]>([
  ['that announces one byte too many', [whole()], ''],
  ['that announces nothing', [(response) => response.end(BODY)], ''],
  ['whose rest is one byte too many', [rest(4)], '0123'],
])('a payload %s is refused', async (_name, replies, left) => {
  const url = await serve(...replies);
  if (left !== '') await leave(url, left);
  await expect(fetchFrom(url, { limits: { maxBytes: 9 } })).rejects.toMatchObject({
    message: 'the download is bigger than 9 bytes',
  });
  expect(asked).toHaveLength(1);
});

test.each<[string, Reply, string]>([
  [
    'all of it',
    (response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('x');
    },
    '',
  ],
  [
    'its rest',
    (response) => {
      response.writeHead(206, { 'content-range': 'bytes 4-9/10', 'content-length': '6' });
      response.write('x');
    },
    '0123',
  ],
])(
  'a payload that announces too much is refused by that, without waiting for %s',
  async (_name, reply, left) => {
    const url = await serve(reply);
    if (left !== '') await leave(url, left);
    await expect(fetchFrom(url, { limits: { maxBytes: 9 } })).rejects.toMatchObject({
      message: 'the download is bigger than 9 bytes',
    });
    expect(await readFile(join(directory, 'part'), 'utf8')).toBe(left);
  },
);

test('a server that never brings a byte is given up after eight attempts', async () => {
  const url = await serve(status(503));
  const error: unknown = await fetchFrom(url).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ message: 'gave up after 8 attempts' });
  expect((error as Error).cause).toMatchObject({
    message: `${new URL(url).host} answered 503 Service Unavailable`,
  });
  expect(asked).toHaveLength(8);
  const waits = lines.map(({ waitMs }) => Math.round(waitMs as number));
  expect(waits.slice(0, 3)).toEqual(waits.slice(0, 3).toSorted((a, b) => a - b));
  expect(waits).toHaveLength(7);
  expect(Math.max(...waits)).toBeLessThanOrEqual(30_000);
});

test('attempts that bring a byte each are not counted', async () => {
  const byte =
    (from: number): Reply =>
    (response) => {
      response.writeHead(206, {
        'content-range': `bytes ${from}-9/10`,
        'content-length': String(10 - from),
      });
      breakOff(response, from, from + 1);
    };
  const url = await serve(broken(1), ...[1, 2, 3, 4, 5, 6, 7, 8].map(byte), rest(9));
  expect(await fetchFrom(url)).toMatchObject({ outcome: 'fetched', text: '0123456789' });
  expect(asked).toHaveLength(10);
});

test.each<[string, Partial<DownloadLimits>, string | undefined, string | undefined]>([
  [
    'the policy requires https',
    { requireHttps: true },
    HASH,
    'but https is required by spec.payloads.requireHttps of the UpgradePolicy',
  ],
  [
    'the agent requires it without a hash',
    { httpsWithoutHash: true },
    undefined,
    'but a download without a sha256 needs https: add the sha256 to the plan',
  ],
  [
    'the agent requires it without a hash, and there is one',
    { httpsWithoutHash: true },
    HASH,
    undefined,
  ],
  [
    'the agent asks other hosts only',
    { allowedHosts: ['mirror.example'] },
    HASH,
    'the address comes from the plan: ',
  ],
  ['the agent asks this host', { allowedHosts: ['127.0.0.1'] }, HASH, undefined],
])('a URL is asked only if the rules allow it: %s', async (_name, limits, sha256, refusal) => {
  const url = await serve(whole());
  const outcome = await fetchFrom(url, { limits, sha256 }).then(
    () => undefined,
    (error: Error) => error.message,
  );
  if (refusal === undefined) expect(outcome).toBeUndefined();
  else expect(outcome).toContain(refusal);
  expect(asked).toHaveLength(refusal === undefined ? 1 : 0);
});

test('without a hash and a validator, what another payload may have replaced is not continued', async () => {
  const url = await serve(broken(4), (response, request) =>
    request.headers.range === undefined
      ? response.writeHead(200, { 'content-length': '10' }).end('ABCDEFGHIJ')
      : response
          .writeHead(206, { 'content-range': 'bytes 4-9/10', 'content-length': '6' })
          .end('EFGHIJ'),
  );
  const { text } = await fetchFrom(url, { sha256: undefined });
  expect(text).toBe('ABCDEFGHIJ');
});
