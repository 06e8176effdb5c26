/**
 * Tests bundles that already exist, under this name or another name: the requests to the server, and the files that are
 * written.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildBundleRequest, buildFetchTools } from '../../../test/support/builders/downloads.ts';
import type { Files } from '../state/durable-files.ts';
import type { PlacedBundle } from './bundle-list.ts';
import { PARTIAL_BUNDLE } from './bundle-name.ts';
import { type BundleRequest, placeBundle } from './place-bundle.ts';

const BYTES = 'the bundle';
const LIMITS = { maxBytes: 1_000_000, reserveBytes: 0, totalMs: 1e9, stallMs: 1e9 };
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

let directory: string;
let images: string;
let origin: string;
let asked: IncomingHttpHeaders[];
let reply: (response: ServerResponse) => void;
let stop: () => Promise<unknown>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-found-'));
  images = join(directory, 'data', 'images');
  await mkdir(images, { recursive: true });
  asked = [];
  reply = (response) => response.end(BYTES);
  const server = createServer((request, response) => {
    asked.push(request.headers);
    reply(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
});
afterEach(async () => {
  await stop();
  await rm(directory, { recursive: true });
});

function requestFor(path: string, more: Partial<BundleRequest> = {}): BundleRequest {
  return buildBundleRequest(directory, {
    url: origin + path,
    sha256: sha256(BYTES),
    limits: LIMITS,
    ...more,
  });
}

async function place(request: BundleRequest, through: Files = files): Promise<void> {
  await placeBundle(request, buildFetchTools({ files: through }));
}

const placed = async (): Promise<string[]> => (await readdir(images)).toSorted();
const listed = async (): Promise<PlacedBundle[]> =>
  (
    JSON.parse(await readFile(join(directory, 'airgap-bundles.json'), 'utf8')) as {
      bundles: PlacedBundle[];
    }
  ).bundles;
const withoutHash = (path: string, more: Partial<BundleRequest> = {}): BundleRequest =>
  requestFor(path, { sha256: undefined, ...more });

test('a bundle of ours with the wanted bytes is found under any name', async () => {
  await place(requestFor('/a.tar'));
  await place(requestFor('/b.tar', { version: 'v2' }));
  expect(asked).toHaveLength(1);
  expect(await placed()).toEqual(['a.tar']);
  expect(await listed()).toMatchObject([{ name: 'a.tar', version: 'v2' }]);
});

test('a bundle of ours with other bytes is not taken for the wanted one', async () => {
  await place(requestFor('/a.tar'));
  reply = (response) => response.end('another');
  await place(requestFor('/b.tar', { sha256: sha256('another') }));
  expect(await readFile(join(images, 'b.tar'), 'utf8')).toBe('another');
});

test('a file of somebody else under the name that the server suggests is enough, and its body is not taken', async () => {
  await writeFile(join(images, 'named.tar'), BYTES);
  reply = (response) =>
    response.writeHead(200, { 'content-disposition': 'attachment; filename=named.tar' }).end(BYTES);
  await place(requestFor('/download'));
  expect(await placed()).toEqual(['named.tar']);
  expect(existsSync(join(directory, 'airgap-bundles.json'))).toBe(false);
});

test('a bundle whose URL has no name gets the name that the server suggests', async () => {
  reply = (response) =>
    response.writeHead(200, { 'content-disposition': 'attachment; filename=named.tar' }).end(BYTES);
  await place(requestFor('/'));
  expect(await placed()).toEqual(['named.tar']);
});

test('without a hash the server says whether the bundle is current, and the list says for which version', async () => {
  reply = (response) => response.writeHead(200, { etag: '"a"' }).end(BYTES);
  await place(withoutHash('/a.tar'));
  reply = (response) => response.writeHead(304).end();
  await place(withoutHash('/a.tar', { version: 'v2' }));
  expect(asked[1]?.['if-none-match']).toBe('"a"');
  expect(await listed()).toMatchObject([{ name: 'a.tar', version: 'v2', validator: '"a"' }]);
});

test.each<[string, string, string | undefined]>([
  ['that knows no conditions, and has another one by now', '"b"', 'new'],
  ['that knows no conditions, and has the same', '"a"', BYTES],
])('without a hash, from a server %s', async (_name, etag, expected) => {
  reply = (response) => response.writeHead(200, { etag: '"a"' }).end(BYTES);
  await place(withoutHash('/a.tar'));
  reply = (response) => response.writeHead(200, { etag }).end('new');
  await place(withoutHash('/a.tar'));
  expect(await readFile(join(images, 'a.tar'), 'utf8')).toBe(expected);
});

test.each<[string, () => Promise<void>]>([
  ['another URL led to it', async () => await Promise.resolve()],
  ['it was changed since', async () => await writeFile(join(images, 'a.tar'), 'changed')],
])('without a hash nothing is said to be here where %s', async (why, change) => {
  reply = (response) => response.writeHead(200, { etag: '"a"' }).end(BYTES);
  await place(withoutHash('/a.tar'));
  await change();
  await place(withoutHash(why.startsWith('another') ? '/b.tar' : '/a.tar'));
  expect(asked[1]).not.toHaveProperty('if-none-match');
});

test('without a hash and a validator nothing is said to be here', async () => {
  await place(withoutHash('/a.tar'));
  await place(withoutHash('/a.tar'));
  expect(asked).toHaveLength(2);
  expect(asked[1]).not.toHaveProperty('if-none-match');
  expect(asked[1]).not.toHaveProperty('if-modified-since');
});

test('a whole part of an earlier process is placed without a request, under the name that it noted', async () => {
  const request = requestFor('/a.tar');
  await writeFile(join(directory, 'data', PARTIAL_BUNDLE), BYTES);
  await writeFile(
    request.record,
    JSON.stringify({ url: request.url, sha256: request.sha256, name: 'noted.tar' }),
  );
  await place(request);
  expect(asked).toEqual([]);
  expect(await placed()).toEqual(['noted.tar']);
});

test('a whole part without a name is asked for again', async () => {
  const request = requestFor('/a.tar');
  await writeFile(join(directory, 'data', PARTIAL_BUNDLE), BYTES);
  await writeFile(request.record, JSON.stringify({ url: request.url, sha256: request.sha256 }));
  reply = (response) =>
    asked.length === 1
      ? response.writeHead(206, { 'content-range': 'bytes 3-' }).end()
      : response.end(BYTES);
  await place(request);
  expect(await placed()).toEqual(['a.tar']);
});

test('the bundles of the newest two versions stay, however many a version has', async () => {
  const bundles = { a: 'v1', b: 'v2', c: 'v2', d: 'v2', e: 'v3', f: 'v2' };
  for (const [name, version] of Object.entries(bundles)) {
    reply = (response) => response.end(name);
    await place(requestFor(`/${name}.tar`, { sha256: sha256(name), version }));
  }
  const names = ['b.tar', 'c.tar', 'd.tar', 'e.tar', 'f.tar'];
  expect((await listed()).map(({ name }) => name)).toEqual(names);
  expect(await placed()).toEqual(names);
  reply = (response) => response.end('g');
  await place(requestFor('/g.tar', { sha256: sha256('g'), version: 'v1' }));
  expect(await placed()).toEqual(['b.tar', 'c.tar', 'd.tar', 'f.tar', 'g.tar']);
});

test('a bundle that somebody else put there becomes none of ours', async () => {
  await place(requestFor('/a.tar'));
  await writeFile(join(images, 'b.tar'), 'theirs');
  await place(requestFor('/b.tar', { sha256: sha256('theirs'), version: 'v2' }));
  expect(await listed()).toMatchObject([{ name: 'a.tar', version: 'v1' }]);
});

test('parts lie outside of the directory that the service imports, unless that is another file system', async () => {
  const outside = join(directory, 'data', PARTIAL_BUNDLE);
  const inside = join(images, PARTIAL_BUNDLE);
  const seen: boolean[][] = [];
  reply = (response) => {
    seen.push([existsSync(outside), existsSync(inside)]);
    response.end(BYTES);
  };
  await place(requestFor('/a.tar'));
  await rm(images, { recursive: true });
  const elsewhere = {
    ...files,
    stat: async (path: string) => await Promise.resolve({ dev: path === images ? 1 : 2 }),
  } as unknown as Files;
  await place(requestFor('/b.tar'), elsewhere);
  expect(seen).toEqual([
    [true, false],
    [false, true],
  ]);
});

test('a bundle that does not fit frees what it took, and is placed once there is room', async () => {
  const looks: boolean[] = [];
  const through = {
    ...files,
    statfs: async () => {
      looks.push(existsSync(join(directory, 'data', PARTIAL_BUNDLE)));
      return await Promise.resolve({ bavail: looks.length < 3 ? 0 : 1e6, blocks: 1e6, bsize: 1 });
    },
  } as unknown as Files;
  reply = (response) =>
    response.writeHead(200, { 'content-length': String(BYTES.length) }).end(BYTES);
  await place(requestFor('/a.tar'), through);
  expect(looks.slice(0, 3)).toEqual([true, false, false]);
  expect(await placed()).toEqual(['a.tar']);
});

test('nothing is asked where the images directory cannot be made', async () => {
  await rm(images, { recursive: true });
  const refused = Object.assign(new Error('EROFS: read-only'), { code: 'EROFS' });
  const through: Files = { ...files, mkdir: async () => await Promise.reject(refused) };
  await expect(place(requestFor('/a.tar'), through)).rejects.toThrow('EROFS');
  expect(asked).toEqual([]);
});

test('a data directory that is not trusted is refused for that reason', async () => {
  const assertTrusted = async (): Promise<void> =>
    await Promise.reject(new Error('others may write to it'));
  await expect(place(requestFor('/a.tar', { fileTrust: { assertTrusted } }))).rejects.toThrow(
    'others may write to it',
  );
});

test('what was found and the directory with its name are on the disk before it counts as placed', async () => {
  await writeFile(join(images, 'a.tar'), BYTES);
  const synced: string[] = [];
  const through: Files = {
    ...files,
    open: async (...given: Parameters<typeof files.open>) => {
      const handle = await files.open(...given);
      const sync = handle.sync.bind(handle);
      handle.sync = async () => {
        synced.push(String(given[0]));
        await sync();
      };
      return handle;
    },
  };
  await place(requestFor('/a.tar'), through);
  expect(synced).toEqual(expect.arrayContaining([join(images, 'a.tar'), images]));
});
