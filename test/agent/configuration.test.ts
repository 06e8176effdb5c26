/** Tests that an agent changes files all at once or not at all, wherever it is killed. */
import { mkdir, rm, stat } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConfiguredHost, file } from './configured-host.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';

let cluster: MemoryCluster;
beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

const ITEMS = [file('/etc/demo/old', 'new\n', 0o600), file('/etc/demo/more', 'more\n')];
const AFTER = ['new\n', 'more\n'];

async function contents(host: ConfiguredHost): Promise<unknown[]> {
  return await Promise.all(['etc/demo/old', 'etc/demo/more'].map(async (path) => await host.read(path)));
}

test('all is changed, and what is as asked for is left alone', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  host.start();
  const first = await host.ask(...ITEMS);
  expect(await host.answer(first)).toEqual({});
  expect(await contents(host)).toEqual(AFTER);
  expect([await host.mode('etc/demo/old'), await host.mode('etc/demo/more')]).toEqual([0o600, 0o644]);
  expect(await host.read('state/journal-configuration.json.previous')).toContain('/etc/demo/old');
  const { ino } = await stat(host.at('etc/demo/old'));
  const second = await host.ask(...ITEMS);
  expect(await host.answer(second)).toEqual({});
  expect((await stat(host.at('etc/demo/old'))).ino).toBe(ino);
});

test('a file outside of the allowed folders: nothing is changed', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  host.start();
  const { failure } = await host.answer(await host.ask(...ITEMS, file('/etc/other', 'x')));
  expect(failure).toMatch(/^--node-configuration does not allow .*\/etc\/other/);
  expect(await contents(host)).toEqual(before);
});

test('what cannot be placed has all before it put back', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  await mkdir(host.at('etc/demo/.more.refit/in-the-way'), { recursive: true });
  host.start();
  const { failure } = await host.answer(await host.ask(...ITEMS));
  expect(failure).toMatch(/put back.*, because of this: /);
  expect((await contents(host))[0]).toBe(before[0]);
});

test('killed in the middle: the next agent puts all back, and begins anew', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  // As an agent leaves them that ended before its last file.
  const old = { content: Buffer.from('old\n').toString('base64'), mode: 0o644, gid: process.getgid?.() ?? 0 };
  await host.put('etc/demo/old', 'new\n');
  await host.put(
    'state/journal-configuration.json',
    JSON.stringify([['/etc/demo/old', old], ['/etc/demo/more']]),
    0o600,
  );
  const next = host.start();
  await host.until(async () => expect(await contents(host)).toEqual(before));
  await host.until(
    async () => await Promise.resolve(expect(next.log.join('\n')).toContain('was cut off, and was put back')),
  );
  expect(await host.read('state/journal-configuration.json')).toBeUndefined();
  const uid = await host.ask(...ITEMS);
  expect(await host.answer(uid)).toEqual({});
  expect(await contents(host)).toEqual(AFTER);
  await rm(host.at('state'), { recursive: true });
});
