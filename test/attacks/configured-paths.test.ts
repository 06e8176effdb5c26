/**
 * Tests that an agent writes only the files that Cluster API may change. A local attacker prepares links, names and
 * files that would make root write elsewhere.
 */
import { execFileSync } from 'node:child_process';
import { chmod, chown, lchown, link, mkdir, symlink } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ConfiguredHost, file, KEYS, keysOfAlice } from '../agent/configured-host.ts';
import { attackAsNobody, NOBODY, useCluster } from './rig.ts';

const cluster = useCluster();

/** Returns the reason why the agent refuses to write, for each of the files. */
async function refusals(
  prepare: (host: ConfiguredHost) => Promise<unknown>,
  ...paths: string[]
): Promise<string[]> {
  await using host = await ConfiguredHost.arrive(cluster());
  await host.put('victim/precious', 'precious');
  await prepare(host);
  host.start();
  const failures: string[] = [];
  for (const path of paths)
    failures.push((await host.answer(await host.ask(file(path, 'bad')))).failure ?? '');
  expect(await host.read('victim/precious')).toBe('precious');
  expect(await host.read('victim/other')).toBeUndefined();
  return failures;
}

test('another way to write a path is refused', async () => {
  const paths = [
    '/etc/demo/../other',
    '/etc/demo//x',
    '/etc/demo/./x',
    '/etc/demo/x/',
    '/etc/demo/a\nb',
    '/etc/demoted',
  ];
  const reasons = await refusals(async () => await Promise.resolve(), ...paths);
  expect(reasons).toHaveLength(paths.length);
  for (const reason of reasons) expect(reason).toContain('does not allow');
});

test('a folder or file that is a symbolic link, a file with a second name and a pipe are refused', async () => {
  const prepare = async (host: ConfiguredHost): Promise<void> => {
    await symlink(host.at('victim'), host.at('etc/demo/sub'));
    await symlink(host.at('victim/precious'), host.at('etc/demo/link'));
    await link(host.at('victim/precious'), host.at('etc/demo/second'));
    execFileSync('mkfifo', [host.at('etc/demo/pipe')]);
  };
  const names = ['sub/other', 'link', 'second', 'pipe'];
  const reasons = await refusals(prepare, ...names.map((name) => `/etc/demo/${name}`));
  expect(reasons).toEqual([
    expect.stringContaining('is reached by a symbolic link'),
    expect.stringContaining('must be a regular file'),
    expect.stringContaining('must be a regular file with only one hard link'),
    expect.stringContaining('must be a regular file'),
  ]);
});

attackAsNobody('a folder that others may write to is refused', async () => {
  const [reason] = await refusals(
    async (host) => await chmod(host.at('etc/demo'), 0o777),
    '/etc/demo/x',
  );
  expect(reason).toContain('others may write to');
});

attackAsNobody('a file of another user is refused', async () => {
  const [reason] = await refusals(
    async (host) => await chown(host.at('etc/demo/old'), NOBODY, NOBODY),
    '/etc/demo/old',
  );
  expect(reason).toContain(`belongs to user ${NOBODY}`);
});

attackAsNobody(
  'keys that are a link to a file of root: the file is neither read nor written',
  async () => {
    await using host = await ConfiguredHost.arrive(cluster());
    await host.put('victim/secret', 'secret', 0o600);
    await mkdir(host.at('home/alice/.ssh'));
    await chown(host.at('home/alice/.ssh'), NOBODY, NOBODY);
    await symlink(host.at('victim/secret'), host.at(KEYS));
    await lchown(host.at(KEYS), NOBODY, NOBODY);
    host.start();
    const { failure } = await host.answer(await host.ask(keysOfAlice('ssh-ed25519 A\n')));
    expect(failure).toContain('Permission denied');
    expect(await host.read('victim/secret')).toBe('secret');
  },
);

attackAsNobody(
  'a folder of keys that is a link to one of root: nothing is written there',
  async () => {
    await using host = await ConfiguredHost.arrive(cluster());
    await mkdir(host.at('victim'));
    await symlink(host.at('victim'), host.at('home/alice/.ssh'));
    host.start();
    const { failure } = await host.answer(await host.ask(keysOfAlice('ssh-ed25519 A\n')));
    expect(failure).toContain('Permission denied');
    expect(await host.read('victim/authorized_keys')).toBeUndefined();
  },
);
