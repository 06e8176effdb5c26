/** Somebody on a host prepares what Cluster API has changed there: links, names and files that would lead root elsewhere. */
import { execFileSync } from 'node:child_process';
import { chmod, chown, lchown, link, mkdir, symlink } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { ConfiguredHost, file, KEYS, keysOfAlice } from '../agent/configured-host.ts';
import { attackAsNobody, NOBODY, useCluster } from './rig.ts';

const cluster = useCluster();

/** Why the agent refuses to write that file. */
async function refusal(prepare: (host: ConfiguredHost) => Promise<void>, path: string): Promise<string> {
  await using host = await ConfiguredHost.arrive(cluster());
  await host.put('victim/precious', 'precious');
  await prepare(host);
  host.start();
  const { failure = '' } = await host.answer(await host.ask(file(path, 'bad')));
  expect(await host.read('victim/precious')).toBe('precious');
  expect(await host.read('victim/other')).toBeUndefined();
  return failure;
}

test.each(['/etc/demo/../other', '/etc/demo//x', '/etc/demo/./x', '/etc/demo/x/', '/etc/demo/a\nb', '/etc/demoted'])(
  'another way to write a path is refused: %j',
  async (path) => {
    expect(await refusal(async () => await Promise.resolve(), path)).toContain('does not allow');
  },
);

test('a folder that is a symbolic link is refused', async () => {
  const reason = await refusal(
    async (host) => await symlink(host.at('victim'), host.at('etc/demo/sub')),
    '/etc/demo/sub/other',
  );
  expect(reason).toContain('is reached by a symbolic link');
});

test('a file that is a symbolic link is refused', async () => {
  const reason = await refusal(
    async (host) => await symlink(host.at('victim/precious'), host.at('etc/demo/x')),
    '/etc/demo/x',
  );
  expect(reason).toContain('is not a plain file');
});

test('a file with a second name is refused', async () => {
  const reason = await refusal(
    async (host) => await link(host.at('victim/precious'), host.at('etc/demo/x')),
    '/etc/demo/x',
  );
  expect(reason).toContain('is not a plain file with a single name');
});

test('a pipe is refused at once', async () => {
  const reason = await refusal(
    async (host) => void (await Promise.resolve(execFileSync('mkfifo', [host.at('etc/demo/x')]))),
    '/etc/demo/x',
  );
  expect(reason).toContain('is not a plain file');
});

attackAsNobody('a folder that others may write to is refused', async () => {
  expect(await refusal(async (host) => await chmod(host.at('etc/demo'), 0o777), '/etc/demo/x')).toContain(
    'others may write to',
  );
});

attackAsNobody('a file of another user is refused', async () => {
  const reason = await refusal(async (host) => await chown(host.at('etc/demo/old'), NOBODY, NOBODY), '/etc/demo/old');
  expect(reason).toContain(`belongs to user ${NOBODY}`);
});

attackAsNobody('keys that are a link to a file of root: the file is neither read nor written', async () => {
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
});

attackAsNobody('a folder of keys that is a link to one of root: nothing is written there', async () => {
  await using host = await ConfiguredHost.arrive(cluster());
  await mkdir(host.at('victim'));
  await symlink(host.at('victim'), host.at('home/alice/.ssh'));
  host.start();
  const { failure } = await host.answer(await host.ask(keysOfAlice('ssh-ed25519 A\n')));
  expect(failure).toContain('Permission denied');
  expect(await host.read('victim/authorized_keys')).toBeUndefined();
});
