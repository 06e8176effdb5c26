/** Tests that an agent changes files and keys all at once or not at all, wherever it is killed. */
import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiFaultsOptions, startApiFaults } from '../faults/api-faults.ts';
import { ConfiguredHost, file, KEYS, keysOfAlice } from './configured-host.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';

let cluster: MemoryCluster;
beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

const ITEMS = [
  file('/etc/demo/old', 'new\n', 0o600),
  file('/etc/demo/more', 'more\n'),
  keysOfAlice('ssh-ed25519 AAAA alice\n'),
];
const AFTER = ['new\n', 'more\n', 'ssh-ed25519 AAAA alice\n'];

async function contents(host: ConfiguredHost): Promise<unknown[]> {
  return await Promise.all(['etc/demo/old', 'etc/demo/more', KEYS].map(async (path) => await host.read(path)));
}

test('all is changed, and what is as asked for is left alone', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  host.start();
  const first = await host.ask(...ITEMS);
  expect(await host.answer(first)).toEqual({});
  expect(await contents(host)).toEqual(AFTER);
  expect([await host.mode('etc/demo/old'), await host.mode('etc/demo/more')]).toEqual([0o600, 0o644]);
  expect(await host.mode(KEYS)).toBe(0o600);
  expect(await host.read('state/journal-configuration.json.previous')).toContain('/etc/demo/old');
  const { ino } = await stat(host.at('etc/demo/old'));
  const second = await host.ask(...ITEMS);
  expect(await host.answer(second)).toEqual({});
  expect((await stat(host.at('etc/demo/old'))).ino).toBe(ino);
});

test.each([
  ['a file outside of the allowed folders', file('/etc/other', 'x')],
  ['the keys of another user', { ...keysOfAlice('ssh-ed25519 A\n'), name: 'user:root' }],
])('%s: nothing is changed', async (_what, item) => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  host.start();
  const { failure } = await host.answer(await host.ask(...ITEMS, item));
  expect(failure).toMatch(/^--node-configuration does not allow /);
  expect(failure).toContain(item.name);
  expect(await contents(host)).toEqual(before);
});

test('keys that cannot be placed have the files before them put back', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  await chmod(host.at('home/alice'), 0o555);
  host.start();
  const { failure } = await host.answer(await host.ask(...ITEMS));
  expect(failure).toMatch(
    /^cannot change the files; all were put back: cannot use .ssh\/authorized_keys of user alice: /,
  );
  expect(await contents(host)).toEqual(before);
});

test('what cannot be placed has all before it put back', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  await mkdir(host.at('etc/demo/.more.refit/in-the-way'), { recursive: true });
  host.start();
  const { failure } = await host.answer(await host.ask(...ITEMS));
  expect(failure).toMatch(/^cannot change the files; all were put back: /);
  expect((await contents(host))[0]).toBe(before[0]);
});

test('where an agent was cut off in the middle, the next one puts all back, and begins anew', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  // As an agent leaves them that ended before its last file.
  const state = (text: string) => ({
    content: Buffer.from(text).toString('base64'),
    mode: 0o644,
    gid: process.getgid?.() ?? 0,
  });
  const fresh = state('new\n');
  await host.put('etc/demo/old', 'new\n');
  await host.put(
    'state/journal-configuration.json',
    JSON.stringify([
      ['/etc/demo/old', state('old\n'), fresh],
      ['/etc/demo/more', undefined, fresh],
      ['user:alice', undefined, fresh],
    ]),
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

test('a failure that cannot be reported is not carried out again for that', async () => {
  let refuses = true;
  const fault: ApiFaultsOptions['fault'] = ({ method }) =>
    refuses && method === 'PATCH' ? { kind: 'answer', code: 403, reason: 'Forbidden' } : undefined;
  const faults = await startApiFaults({ upstream: { url: cluster.url }, fault });
  try {
    const kubeconfig = await cluster.kubeconfigFor(faults.url);
    await using host = await ConfiguredHost.arrive({ admin: cluster.admin, kubeconfig });
    await chmod(host.at('home/alice'), 0o555);
    const agent = host.start();
    const uid = await host.ask(...ITEMS);
    const count = (message: string): number => agent.log.filter((line) => line.includes(message)).length;
    await host.until(
      async () => await Promise.resolve(expect(count('cannot finish a change of files')).toBeGreaterThan(2)),
    );
    refuses = false;
    expect((await host.answer(uid)).failure).toContain('cannot change the files; all were put back');
    expect(count('cannot change files for Cluster API')).toBe(1);
  } finally {
    await faults.stop();
  }
});
