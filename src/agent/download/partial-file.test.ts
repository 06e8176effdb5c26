/**
 * Tests which parts of an incomplete download are kept, which of these parts a later process trusts, and the content of
 * the record.
 */
import { createHash } from 'node:crypto';
import * as files from 'node:fs/promises';
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Files } from '../state/durable-files.ts';
import { hashFile } from './hash-file.ts';
import { openPartial, type PartialFile, wantedHash } from './partial-file.ts';

const URL_A = 'https://mirror.example/k0s';
const ABC = Buffer.from('abc');
const HASH = createHash('sha256').update(ABC).digest('hex');

let directory: string;
let paths: { part: string; record: string };

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-part-'));
  paths = { part: join(directory, 'part'), record: join(directory, 'record.json') };
});
afterEach(async () => await rm(directory, { recursive: true }));

const open = async (sha256: string | undefined, through: Files = files): Promise<PartialFile> =>
  await openPartial({ url: URL_A, sha256 }, paths, through);
const recorded = async (): Promise<unknown> => JSON.parse(await readFile(paths.record, 'utf8'));

async function leave(record: unknown, bytes: Buffer = ABC): Promise<void> {
  await writeFile(paths.part, bytes);
  await writeFile(paths.record, typeof record === 'string' ? record : JSON.stringify(record));
}

test('a new part is for its owner only, and its record is there before any byte', async () => {
  await using part = await open(HASH);
  expect((await stat(paths.part)).mode & 0o777).toBe(0o600);
  expect(await recorded()).toEqual({ url: URL_A, sha256: HASH });
  expect([part.bytes, part.pieced, part.wanted, part.origin]).toEqual([
    0,
    false,
    HASH,
    { url: URL_A, sha256: HASH },
  ]);
});

test('bytes are counted and hashed as they come', async () => {
  await using part = await open(undefined);
  await part.append(Buffer.from('ab'));
  await part.append(Buffer.from('c'));
  expect([part.bytes, part.sha256, part.wanted]).toEqual([3, HASH, undefined]);
  expect(await readFile(paths.part, 'utf8')).toBe('abc');
});

test.each<[string, string | undefined, unknown, number]>([
  ['the same URL and hash', HASH, { url: URL_A, sha256: HASH }, 3],
  ['a seal, without a hash in the signal', undefined, { url: URL_A, sealed: HASH }, 3],
  ['no seal, without a hash in the signal', undefined, { url: URL_A }, 0],
  ['another URL', HASH, { url: 'https://other.example/k0s', sha256: HASH }, 0],
  ['another hash', HASH, { url: URL_A, sha256: 'f'.repeat(64) }, 0],
  [
    'a hash, where the signal has none any more',
    undefined,
    { url: URL_A, sha256: HASH, sealed: HASH },
    0,
  ],
  ['no URL', HASH, { sha256: HASH }, 0],
  ['no object', HASH, [URL_A], 0],
  ['no JSON', HASH, '{', 0],
  ['a hash that is no text', HASH, { url: URL_A, sha256: 7 }, 0],
  ['a seal that is no text', undefined, { url: URL_A, sealed: 7 }, 0],
  ['a validator that is no text', HASH, { url: URL_A, sha256: HASH, validator: 7 }, 0],
  ['a name that leads out of the directory', HASH, { url: URL_A, sha256: HASH, name: '../x' }, 0],
  ['a name', HASH, { url: URL_A, sha256: HASH, name: 'bundle.tar' }, 3],
])('a part is continued by its record: %s', async (_name, sha256, record, bytes) => {
  await leave(record);
  await using part = await open(sha256);
  expect([part.bytes, part.pieced]).toEqual([bytes, bytes > 0]);
  expect((await stat(paths.part)).size).toBe(bytes);
  expect(part.sha256).toBe(bytes > 0 ? HASH : createHash('sha256').digest('hex'));
});

test('a partial file without a byte is not continued, because its first answer makes it whole', async () => {
  await leave({ url: URL_A, sha256: HASH }, Buffer.alloc(0));
  await using part = await open(HASH);
  expect(part.pieced).toBe(false);
});

test('a partial file that begins anew forgets its bytes and takes the new origin', async () => {
  await leave({ url: URL_A, sha256: HASH, validator: '"old"', name: 'old.tar' });
  await using part = await open(HASH);
  expect(part.origin).toMatchObject({ validator: '"old"', name: 'old.tar' });
  await part.restart({ validator: '"new"', name: 'new.tar' });
  expect(await recorded()).toEqual({
    url: URL_A,
    sha256: HASH,
    validator: '"new"',
    name: 'new.tar',
  });
  expect([part.bytes, part.pieced]).toEqual([0, false]);
  await part.append(ABC);
  expect(part.sha256).toBe(HASH);
  await part.restart({});
  expect(await recorded()).toEqual({ url: URL_A, sha256: HASH });
});

test('a seal sets the mode, records the hash, and is what a later process believes', async () => {
  {
    await using part = await open(undefined);
    await part.append(ABC);
    await part.seal(0o755);
    expect(part.wanted).toBe(HASH);
  }
  expect((await stat(paths.part)).mode & 0o777).toBe(0o755);
  expect(await recorded()).toEqual({ url: URL_A, sealed: HASH });
  expect(await wantedHash(undefined, paths.record, files)).toBe(HASH);
});

test.each<[string, unknown, string | undefined]>([
  ['the hash of the signal comes first', { url: URL_A, sha256: 'a', sealed: 'b' }, 'a'],
  ['a record that cannot be read tells none', '{', undefined],
  ['a record without a URL tells none', { sha256: 'a' }, undefined],
  ['a record that is no object tells none', 'null', undefined],
  ['a record whose hash is no text tells none', { url: URL_A, sha256: 7 }, undefined],
  [
    'a record with the name of another directory tells none',
    { url: URL_A, sha256: 'a', name: '../x' },
    undefined,
  ],
])('the hash of what is staged: %s', async (_name, record, expected) => {
  await leave(record);
  expect(await wantedHash(undefined, paths.record, files)).toBe(expected);
});

test('a symbolic link in the place of a partial file is refused', async () => {
  await symlink(join(directory, 'elsewhere'), paths.part);
  await expect(open(HASH)).rejects.toThrow('ELOOP');
});

/** Real files, with counters for syncs and open handles. A test can make a sync fail. */
function watched() {
  const seen = { datasyncs: 0, open: 0, isBroken: false };
  const through: Files = {
    ...files,
    open: async (...given: Parameters<typeof files.open>) => {
      const handle = await files.open(...given);
      seen.open++;
      const datasync = handle.datasync.bind(handle);
      const close = handle.close.bind(handle);
      handle.datasync = async () => {
        seen.datasyncs++;
        if (seen.isBroken) throw Object.assign(new Error('EIO: broken'), { code: 'EIO' });
        await datasync();
      };
      handle.close = async () => {
        seen.open--;
        await close();
      };
      return handle;
    },
  };
  return { seen, through };
}

test('a download loses about a MiB at most when the power fails', async () => {
  const { seen, through } = watched();
  await using part = await open(HASH, through);
  const most = Buffer.alloc(1024 * 1024 - 1);
  await part.append(most);
  expect(seen.datasyncs).toBe(0);
  await part.append(ABC);
  expect(seen.datasyncs).toBe(1);
  await part.append(most);
  expect(seen.datasyncs).toBe(1);
  await part.restart({});
  await part.append(ABC);
  expect(seen.datasyncs).toBe(1);
});

test('bytes that the disk did not take are never sealed, and nothing stays open', async () => {
  const { seen, through } = watched();
  seen.isBroken = true;
  {
    await using part = await open(HASH, through);
    await part.append(Buffer.alloc(1024 * 1024));
    await expect(part.seal(0o755)).rejects.toThrow('EIO');
    await expect(part.append(Buffer.alloc(1024 * 1024))).rejects.toThrow('EIO');
  }
  expect(seen.open).toBe(0);
});

test('a part that cannot be begun leaves nothing open', async () => {
  const { seen, through } = watched();
  const broken: Files = {
    ...through,
    rename: async () => await Promise.reject(new Error('EROFS')),
  };
  await expect(open(HASH, broken)).rejects.toThrow('EROFS');
  expect(seen.open).toBe(0);
});

test('a file that is not there has no hash, and one that cannot be read is an error', async () => {
  expect(await hashFile(join(directory, 'none'), files)).toBeUndefined();
  await expect(hashFile(directory, files)).rejects.toThrow('EISDIR');
  await writeFile(paths.part, Buffer.alloc(600_000, 7));
  const expected = createHash('sha256').update(Buffer.alloc(600_000, 7)).digest('hex');
  expect(await hashFile(paths.part, files)).toBe(expected);
});
