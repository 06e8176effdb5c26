/** Tests the previous binary of a host: how long it is kept, and when it is used or removed. */

import { createHash } from 'node:crypto';
import * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { rfc3339 } from '../../util/clock.ts';
import { silentLogger } from '../../util/log.ts';
import type { Files } from './durable-files.ts';
import { keptBinary } from './kept-binary.ts';

const HOUR = 3_600_000;
const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Returns a host with an installed binary. The test sets the wall time and the monotonic time of its clock. */
async function place(keepMs?: number) {
  const directory = await files.mkdtemp(join(tmpdir(), 'refit-kept-'));
  onTestFinished(async () => await files.rm(directory, { recursive: true }));
  const time = { wall: Date.parse('2026-11-20T10:00:00Z'), steady: 0 };
  const clock = { now: () => time.wall, monotonic: () => time.steady };
  const binary = join(directory, 'k0s');
  const path = `${binary}.previous`;
  const opened: string[] = [];
  const counted: Files = {
    ...files,
    open: async (...args) => {
      opened.push(String(args[0]));
      return await files.open(...args);
    },
  };
  const record = join(directory, 'kept.json');
  const parts = { record, files: counted, clock, log: silentLogger };
  const open = () => keptBinary(parts);
  const kept = open();
  await files.writeFile(binary, 'old');
  await kept.replace({ path, version: 'v1', keepMs }, async () => {
    await files.link(binary, path);
    await files.rm(binary);
    await files.writeFile(binary, 'new');
  });
  const isThere = async () =>
    await files.access(path).then(
      () => true,
      () => false,
    );
  const pass = (ms: number): void => {
    time.wall += ms;
    time.steady += ms;
  };
  return { kept, open, opened, time, pass, binary, path, isThere, directory };
}

test('a kept binary without a time stays', async () => {
  const { kept, pass, isThere } = await place();
  await kept.settle();
  pass(9_000 * HOUR);
  await kept.tend();
  expect([await isThere(), await kept.facts()]).toEqual([
    true,
    { version: 'v1', sha256: sha('old') },
  ]);
});

test('the time of a kept binary begins with the success of the upgrade, and the binary is removed at its end', async () => {
  const { kept, pass, isThere, time } = await place(2 * HOUR);
  pass(5 * HOUR);
  await kept.tend();
  expect(await isThere()).toBe(true);
  await kept.settle();
  expect(await kept.facts()).toMatchObject({ until: rfc3339(time.wall + 2 * HOUR) });
  pass(HOUR);
  await kept.tend();
  expect(await isThere()).toBe(true);
  pass(HOUR);
  await kept.tend();
  expect(await isThere()).toBe(false);
  expect(await kept.facts()).toEqual({ version: 'v1', sha256: sha('old'), gone: 'Expired' });
});

test('a time of 0s removes the kept binary after the success, not before', async () => {
  const { kept, isThere, time } = await place(0);
  await kept.tend();
  expect(await isThere()).toBe(true);
  await kept.settle();
  expect(await isThere(), 'the last report waits for this function').toBe(true);
  expect((await kept.facts())?.until).toBe(rfc3339(time.wall));
  await kept.tend();
  expect(await isThere()).toBe(false);
});

test('a wall clock that jumps does not remove a kept binary early, and corrects the announced time', async () => {
  const { kept, time, isThere } = await place(2 * HOUR);
  await kept.settle();
  time.wall += 1_000 * HOUR;
  await kept.tend();
  expect([await isThere(), (await kept.facts())?.until]).toEqual([
    true,
    rfc3339(time.wall + 2 * HOUR),
  ]);
  time.wall -= 2_000 * HOUR;
  await kept.tend();
  expect((await kept.facts())?.until).toBe(rfc3339(time.wall + 2 * HOUR));
});

test('a restarted agent continues the count', async () => {
  const { kept, open, pass, isThere } = await place(3 * HOUR);
  await kept.settle();
  pass(2 * HOUR);
  await kept.tend();
  const next = open();
  pass(HOUR);
  await next.tend();
  expect(await isThere()).toBe(false);
});

test('a kept binary that was changed is not used', async () => {
  const { kept, path, directory } = await place();
  await kept.verify(path);
  const staged = join(directory, 'staged');
  expect(await kept.take(path, sha('old'), staged)).toBe(true);
  expect(await files.readFile(staged, 'utf8')).toBe('old');
  await files.rm(path);
  await files.writeFile(path, 'evil');
  await expect(kept.verify(path)).rejects.toThrow('is not the binary that was kept');
  expect(await kept.take(path, sha('old'), join(directory, 'other'))).toBe(false);
  expect(await kept.take(path, sha('evil'), join(directory, 'other'))).toBe(false);
});

test('a file that somebody changed, removed or put back is announced', async () => {
  const { kept, open, path, binary } = await place();
  const whole = { version: 'v1', sha256: sha('old') };
  await files.writeFile(path, 'evi');
  expect(await kept.facts()).toEqual({ gone: 'Changed' });
  expect(await open().facts()).toEqual({ gone: 'Changed' });
  await files.rm(path);
  expect(await kept.facts()).toEqual({ gone: 'Removed' });
  await files.symlink(binary, path);
  expect(await kept.facts()).toEqual({ gone: 'Changed' });
  await files.rm(path);
  await files.writeFile(path, 'old');
  expect(await kept.facts()).toEqual(whole);
});

test('the file is hashed again only if its stamp has changed', async () => {
  const { kept, open, opened, path } = await place();
  await kept.facts();
  opened.length = 0;
  const hashes = () => opened.filter((name) => name === path).length;
  await kept.facts();
  await open().facts();
  expect(hashes()).toBe(0);
  await files.link(path, `${path}.other`);
  expect(await open().facts()).toMatchObject({ version: 'v1' });
  expect(await open().facts()).toMatchObject({ version: 'v1' });
  expect(hashes()).toBe(1);
});

test('a kept binary makes room only after the success, and only beside a working binary', async () => {
  const { kept, binary, path, isThere } = await place();
  expect(await kept.sacrifice(binary, path)).toBe(false);
  await kept.settle();
  await files.truncate(binary);
  expect(await kept.sacrifice(binary, path)).toBe(false);
  await files.writeFile(binary, 'new');
  expect([await kept.sacrifice(binary, path), await isThere()]).toEqual([true, false]);
  expect(await kept.facts()).toMatchObject({ gone: 'DiskFull' });
  expect(await kept.sacrifice(binary, path)).toBe(false);
});
