/**
 * Tests what a download finds in its staging directory, and what it leaves there: a file with other bytes, a full disk,
 * a directory that no longer exists.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type DownloadServer,
  startDownloadServer,
} from '../../../sandbox/hosts/download-server.ts';
import { buildDownloadRequest, buildFetchTools } from '../../../test/support/builders/downloads.ts';
import type { Files } from '../state/durable-files.ts';
import { type DownloadRequest, discardDownload, download } from './stage-binary.ts';

const BYTES = Buffer.alloc(50_000, 'k0s');
const SHA256 = createHash('sha256').update(BYTES).digest('hex');
const LIMITS = { maxBytes: 1_000_000, reserveBytes: 0, totalMs: 1e9, stallMs: 1e9 };

let directory: string;
let server: DownloadServer;
let request: DownloadRequest;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-left-'));
  await writeFile(join(directory, 'payload'), BYTES);
  server = await startDownloadServer({ files: { '/k0s': join(directory, 'payload') } });
  request = buildDownloadRequest(directory, {
    url: `${server.url}/k0s`,
    sha256: SHA256,
    limits: LIMITS,
  });
});
afterEach(async () => {
  await server.stop();
  await rm(directory, { recursive: true });
});

async function fetchNow(through: Files = files): Promise<void> {
  await download(request, buildFetchTools({ files: through }));
}

test.each<[string, string | Buffer]>([
  ['other bytes', 'not the payload'],
  ['part of the payload', BYTES.subarray(0, 40_000)],
  ['one byte changed', Buffer.from(BYTES).fill('x', 49_999)],
  ['nothing', ''],
])(
  'a staged file with %s is not taken for the payload, whatever its name',
  async (_name, bytes) => {
    await writeFile(request.staged, bytes, { mode: 0o755 });
    await fetchNow();
    expect(server.requests).toHaveLength(1);
    expect(
      createHash('sha256')
        .update(await readFile(request.staged))
        .digest('hex'),
    ).toBe(SHA256);
  },
);

test('a download that does not fit frees what it took, waits, and is staged once there is room', async () => {
  const left = (): boolean[] =>
    [request.staged, request.paths.part, request.paths.record].map((path) => existsSync(path));
  const looks: boolean[][] = [];
  const through = {
    ...files,
    statfs: async () => {
      looks.push(left());
      return await Promise.resolve({ bavail: looks.length < 3 ? 0 : 1e6, blocks: 1e6, bsize: 1 });
    },
  } as unknown as Files;
  await fetchNow(through);
  // The first check is in the middle of the download. While the download waits, none of its files exist.
  expect(looks[0]).toEqual([false, true, true]);
  expect(looks.slice(1, 3)).toEqual([
    [false, false, false],
    [false, false, false],
  ]);
  expect((await readFile(request.staged)).equals(BYTES)).toBe(true);
});

test('a directory that is gone has nothing to discard; one that cannot be synced is an error', async () => {
  const gone = { staged: join(directory, 'gone', 'k0s.tmp'), paths: request.paths };
  await discardDownload(gone, files);
  const broken: Files = {
    ...files,
    open: async () =>
      await Promise.reject(Object.assign(new Error('EIO: broken'), { code: 'EIO' })),
  };
  await expect(discardDownload(request, broken)).rejects.toThrow('EIO');
});
