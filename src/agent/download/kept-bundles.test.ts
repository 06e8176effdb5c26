/** Tests how long the airgap bundles of the previous version stay, and when they are removed. */
import { createHash } from 'node:crypto';
import * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { rfc3339 } from '../../util/clock.ts';
import { silentLogger } from '../../util/log.ts';
import type { Files } from '../state/durable-files.ts';
import { keptBundles } from './kept-bundles.ts';

const HOUR = 3_600_000;
const V1 = 'v1.36.1+k0s.0';
const V2 = 'v1.36.2+k0s.0';
const V3 = 'v1.36.3+k0s.0';
const V4 = 'v1.36.4+k0s.0';
const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A host that runs v1 and has a bundle for v1, and a clock whose two times the test sets. */
async function place() {
  const directory = await files.mkdtemp(join(tmpdir(), 'refit-bundles-'));
  onTestFinished(async () => await files.rm(directory, { recursive: true }));
  const images = join(directory, 'images');
  await files.mkdir(images);
  const time = { wall: Date.parse('2026-11-20T10:00:00Z'), steady: 0 };
  const host: { runs: string | undefined } = { runs: V1 };
  const opened: string[] = [];
  const parts = {
    list: join(directory, 'list.json'),
    imagesDirectory: () => images,
    files: {
      ...files,
      open: async (...args: Parameters<Files['open']>) => {
        opened.push(String(args[0]));
        return await files.open(...args);
      },
    },
    clock: { now: () => time.wall, monotonic: () => time.steady },
    log: silentLogger,
    running: async () => await Promise.resolve(host.runs),
  };
  const open = () => keptBundles(parts);
  const bundles = open();
  const come = async (version: string, keepMs?: number) => {
    const known = { name: version, url: 'https://a.example/', version, sha256: sha(version) };
    await bundles.add(known, keepMs);
    await files.writeFile(join(images, version), version);
    await bundles.arrange(version, version, keepMs);
  };
  const upgrade = async (version: string) => {
    host.runs = version;
    await bundles.settle(version);
  };
  const pass = (ms: number): void => {
    time.wall += ms;
    time.steady += ms;
  };
  const there = async () => (await files.readdir(images)).toSorted();
  await come(V1);
  return { bundles, open, host, come, upgrade, pass, time, there, opened, directory, images };
}

test('a kept bundle without a time stays until the next bundle', async () => {
  const { bundles, come, upgrade, pass, there } = await place();
  await come(V2);
  await upgrade(V2);
  pass(9_000 * HOUR);
  await bundles.tend();
  expect([await there(), await bundles.facts()]).toEqual([[V1, V2], { version: V1 }]);
  await come(V3);
  expect(await there()).toEqual([V2, V3]);
});

test('the time of a kept bundle begins with the success of the upgrade, and goes on after a restart of the agent', async () => {
  const { bundles, open, come, upgrade, pass, there, time } = await place();
  await come(V2, 3 * HOUR);
  pass(5 * HOUR);
  await bundles.tend();
  await upgrade(V2);
  expect(await bundles.facts()).toEqual({ version: V1, until: rfc3339(time.wall + 3 * HOUR) });
  pass(2 * HOUR);
  await bundles.tend();
  const next = open();
  expect(await there()).toEqual([V1, V2]);
  pass(HOUR);
  await next.tend();
  expect([await there(), await next.facts()]).toEqual([[V2], { version: V1, gone: 'Expired' }]);
});

test('a time of 0s removes a kept bundle after the success, not before, and not while the service does not answer', async () => {
  const { bundles, come, upgrade, host, there } = await place();
  await come(V2, 0);
  await bundles.tend();
  expect(await there()).toEqual([V1, V2]);
  host.runs = undefined;
  await bundles.settle(V2);
  await bundles.tend();
  expect(await there()).toEqual([V1, V2]);
  host.runs = V2;
  await bundles.tend();
  expect(await there()).toEqual([V2]);
  await upgrade(V2);
});

test('the success is recorded without a look at the files, because the last report waits for it', async () => {
  const { bundles, come, upgrade, there, time, opened, images } = await place();
  await come(V2, 0);
  opened.length = 0;
  await upgrade(V2);
  expect(opened.filter((path) => path.startsWith(images))).toEqual([]);
  expect([await there(), await bundles.facts()]).toEqual([
    [V1, V2],
    { version: V1, until: rfc3339(time.wall) },
  ]);
  await bundles.tend();
  expect(await there()).toEqual([V2]);
});

test('a bundle that comes after its upgrade starts the time, too', async () => {
  const { bundles, come, upgrade, there } = await place();
  await upgrade(V2);
  await come(V2, 0);
  await bundles.tend();
  expect(await there()).toEqual([V2]);
});

test('the bundle of the version that runs is never removed', async () => {
  const { bundles, come, upgrade, host, there, directory } = await place();
  await come(V2);
  await come(V3);
  expect(await there()).toEqual([V1, V3]);
  await upgrade(V3);
  host.runs = V1;
  expect(await bundles.sacrifice(directory, V4)).toBeUndefined();
  expect(await there()).toEqual([V1, V3]);
});

test('after a way back, the bundle of the version that runs again is the newest', async () => {
  const { bundles, come, upgrade } = await place();
  await come(V2, HOUR);
  await upgrade(V2);
  await upgrade(V1);
  expect(await bundles.facts()).toEqual({ version: V2 });
});

test('a kept bundle makes room only after the success, only for another version, and only if nobody changed it', async () => {
  const { bundles, come, upgrade, there, directory, images } = await place();
  await come(V2);
  expect(await bundles.sacrifice(directory, V3)).toBeUndefined();
  await upgrade(V2);
  expect(await bundles.sacrifice(directory, V1)).toBeUndefined();
  await files.writeFile(join(images, V1), 'theirs');
  expect(await bundles.sacrifice(directory, V3)).toBeUndefined();
  expect(await bundles.facts()).toEqual({ version: V1, gone: 'Changed' });
  await files.writeFile(join(images, V1), V1);
  expect(await bundles.sacrifice(directory, V3)).toBe(V1);
  expect([await there(), await bundles.facts()]).toEqual([[V2], { version: V1, gone: 'DiskFull' }]);
  expect(await bundles.sacrifice(directory, V3)).toBeUndefined();
});

test('two agents of a host lose no change of each other', async () => {
  const { bundles, come, upgrade, there } = await place();
  await come(V2, 0);
  await Promise.all([upgrade(V2), come(V3, 0)]);
  expect(await there()).toEqual([V2, V3]);
  expect((await bundles.placed()).map(({ name }) => name)).toEqual([V2, V3]);
});

test('a bundle whose plan writes the version without its v is that of the version that runs', async () => {
  const { bundles, come, upgrade, host, pass, there, directory } = await place();
  await come('1.36.2+k0s.0', HOUR);
  await upgrade(V2);
  pass(HOUR);
  await bundles.tend();
  expect([await there(), await bundles.facts()]).toEqual([
    ['1.36.2+k0s.0'],
    { version: V1, gone: 'Expired' },
  ]);
  await come('1.36.3+k0s.0');
  await come(V3);
  expect(await there()).toEqual(['1.36.2+k0s.0', '1.36.3+k0s.0', V3]);
  await come(V4, HOUR);
  expect(await there()).toEqual(['1.36.2+k0s.0', V4]);
  await upgrade(V4);
  host.runs = V2;
  expect(await bundles.sacrifice(directory, V3)).toBeUndefined();
  pass(HOUR);
  await bundles.tend();
  expect(await there()).toEqual(['1.36.2+k0s.0', V4]);
});

test('a download does not remove the bundle of its own version, however the version is written', async () => {
  const { bundles, come, upgrade, there, directory } = await place();
  await come(V2);
  await upgrade(V2);
  expect(await bundles.sacrifice(directory, '1.36.1+k0s.0')).toBeUndefined();
  expect(await there()).toEqual([V1, V2]);
});

test('no bundle is removed if it is not certain that another version runs', async () => {
  const { bundles, come, host, there, directory } = await place();
  host.runs = 'unreadable';
  await come(V2);
  await come(V3, 0);
  expect(await there()).toEqual([V1, V2, V3]);
  await bundles.settle(V3);
  expect(await bundles.sacrifice(directory, V4)).toBeUndefined();
  await bundles.tend();
  expect(await there()).toEqual([V1, V2, V3]);
});

test('after a crash between the removal and its record, the bundle is expired, not removed by somebody', async () => {
  const { bundles, open, come, upgrade, pass, images } = await place();
  await come(V2, HOUR);
  await upgrade(V2);
  await files.rm(join(images, V1));
  expect(await bundles.facts()).toEqual({ version: V1, gone: 'Removed' });
  pass(HOUR);
  await bundles.tend();
  expect(await bundles.facts()).toEqual({ version: V1, gone: 'Expired' });
  expect(await open().facts()).toEqual({ version: V1, gone: 'Expired' });
});

test('a disk that is not there hides the bundles, but they are not removed', async () => {
  const { bundles, come, upgrade, pass, images, there } = await place();
  await come(V2, HOUR);
  await upgrade(V2);
  await files.rename(images, `${images}.away`);
  pass(HOUR);
  await bundles.tend();
  await files.rename(`${images}.away`, images);
  expect([await there(), await bundles.facts()]).toEqual([
    [V1, V2],
    expect.objectContaining({ version: V1 }),
  ]);
  await bundles.tend();
  expect([await there(), await bundles.facts()]).toEqual([[V2], { version: V1, gone: 'Expired' }]);
});

test('a bundle that somebody changed stays, and one that is gone makes no room', async () => {
  const { bundles, come, upgrade, pass, images, there, directory } = await place();
  await come(V2, HOUR);
  await upgrade(V2);
  await files.rm(join(images, V1));
  expect(await bundles.sacrifice(directory, V3)).toBeUndefined();
  await files.writeFile(join(images, V1), 'theirs');
  pass(HOUR);
  await bundles.tend();
  expect([await there(), await bundles.facts()]).toEqual([
    [V1, V2],
    { version: V1, gone: 'Changed' },
  ]);
});
