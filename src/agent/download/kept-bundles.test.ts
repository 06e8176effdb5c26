/** The airgap bundles of the previous version: how long they stay, and when they are given up. */
import { createHash } from 'node:crypto';
import * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { rfc3339 } from '../../util/clock.ts';
import { silentLogger } from '../../util/log.ts';
import { keptBundles } from './kept-bundles.ts';

const HOUR = 3_600_000;
const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A host on which v1 runs, with a bundle for it, and a clock whose two times are set by hand. */
async function place() {
  const directory = await files.mkdtemp(join(tmpdir(), 'refit-bundles-'));
  onTestFinished(async () => await files.rm(directory, { recursive: true }));
  const images = join(directory, 'images');
  await files.mkdir(images);
  const time = { wall: Date.parse('2026-11-20T10:00:00Z'), steady: 0 };
  const host: { runs: string | undefined } = { runs: 'v1' };
  const parts = {
    list: join(directory, 'list.json'),
    imagesDirectory: () => images,
    files,
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
  await come('v1');
  return { bundles, open, host, come, upgrade, pass, time, there, directory, images };
}

test('without a time it stays until the next bundle', async () => {
  const { bundles, come, upgrade, pass, there } = await place();
  await come('v2');
  await upgrade('v2');
  pass(9_000 * HOUR);
  await bundles.tend();
  expect([await there(), await bundles.facts()]).toEqual([['v1', 'v2'], { version: 'v1' }]);
  await come('v3');
  expect(await there()).toEqual(['v2', 'v3']);
});

test('its time begins with the success of the upgrade, and goes on after a restart of the agent', async () => {
  const { bundles, open, come, upgrade, pass, there, time } = await place();
  await come('v2', 3 * HOUR);
  pass(5 * HOUR);
  await bundles.tend();
  await upgrade('v2');
  expect(await bundles.facts()).toEqual({ version: 'v1', until: rfc3339(time.wall + 3 * HOUR) });
  pass(2 * HOUR);
  await bundles.tend();
  const next = open();
  expect(await there()).toEqual(['v1', 'v2']);
  pass(HOUR);
  await next.tend();
  expect([await there(), await next.facts()]).toEqual([['v2'], { version: 'v1', gone: 'Expired' }]);
});

test('0s removes it after the success, not before, and not while the service does not answer', async () => {
  const { bundles, come, upgrade, host, there } = await place();
  await come('v2', 0);
  await bundles.tend();
  expect(await there()).toEqual(['v1', 'v2']);
  host.runs = undefined;
  await bundles.settle('v2');
  await bundles.tend();
  expect(await there()).toEqual(['v1', 'v2']);
  host.runs = 'v2';
  await bundles.tend();
  expect(await there()).toEqual(['v2']);
  await upgrade('v2');
});

test('a bundle that comes after its upgrade starts the time, too', async () => {
  const { bundles, come, upgrade, there } = await place();
  await upgrade('v2');
  await come('v2', 0);
  await bundles.tend();
  expect(await there()).toEqual(['v2']);
});

test('the bundle of the version that runs is never removed', async () => {
  const { bundles, come, upgrade, host, there, directory } = await place();
  await come('v2');
  await come('v3');
  expect(await there()).toEqual(['v1', 'v3']);
  await upgrade('v3');
  host.runs = 'v1';
  expect(await bundles.sacrifice(directory, 'v4')).toBeUndefined();
  expect(await there()).toEqual(['v1', 'v3']);
});

test('after a way back, the bundle of the version that runs again is the newest', async () => {
  const { bundles, come, upgrade } = await place();
  await come('v2', HOUR);
  await upgrade('v2');
  await upgrade('v1');
  expect(await bundles.facts()).toEqual({ version: 'v2' });
});

test('it makes room only after the success, only for another version, and only if nobody changed it', async () => {
  const { bundles, come, upgrade, there, directory, images } = await place();
  await come('v2');
  expect(await bundles.sacrifice(directory, 'v3')).toBeUndefined();
  await upgrade('v2');
  expect(await bundles.sacrifice(directory, 'v1')).toBeUndefined();
  await files.writeFile(join(images, 'v1'), 'theirs');
  expect(await bundles.sacrifice(directory, 'v3')).toBeUndefined();
  expect(await bundles.facts()).toEqual({ version: 'v1', gone: 'Changed' });
  await files.writeFile(join(images, 'v1'), 'v1');
  expect(await bundles.sacrifice(directory, 'v3')).toBe('v1');
  expect([await there(), await bundles.facts()]).toEqual([
    ['v2'],
    { version: 'v1', gone: 'DiskFull' },
  ]);
  expect(await bundles.sacrifice(directory, 'v3')).toBeUndefined();
});

test('two agents of a host lose no change of each other', async () => {
  const { bundles, come, upgrade, there } = await place();
  await come('v2', 0);
  await Promise.all([upgrade('v2'), come('v3', 0)]);
  expect(await there()).toEqual(['v2', 'v3']);
  expect((await bundles.placed()).map(({ name }) => name)).toEqual(['v2', 'v3']);
});
