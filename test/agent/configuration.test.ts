/** Tests that an agent changes either all files and keys or none of them, at whatever point it is killed. */
import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiFaultsOptions, startApiFaults } from '../faults/api-faults.ts';
import {
  argument,
  ConfiguredHost,
  FLAGS,
  file,
  KEYS,
  keysOfAlice,
  RESTART,
} from './configured-host.ts';
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
  return await Promise.all(
    ['etc/demo/old', 'etc/demo/more', KEYS].map(async (path) => await host.read(path)),
  );
}

test('all is changed, and what is as asked for is left alone', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  host.start();
  const first = await host.ask(...ITEMS);
  expect(await host.answer(first)).toEqual({});
  expect(await contents(host)).toEqual(AFTER);
  expect([await host.mode('etc/demo/old'), await host.mode('etc/demo/more')]).toEqual([
    0o600, 0o644,
  ]);
  expect(await host.mode(KEYS)).toBe(0o600);
  expect(await host.read('state/journal-configuration.json.previous')).toContain('/etc/demo/old');
  const { ino } = await stat(host.at('etc/demo/old'));
  const second = await host.ask(...ITEMS);
  expect(await host.answer(second)).toEqual({});
  expect((await stat(host.at('etc/demo/old'))).ino).toBe(ino);
});

test.each([
  ['a file outside of the allowed folders', file('/etc/other', 'x')],
  ['an argument that names a folder of programs', argument('volume-plugin-dir', 'x')],
  ['an argument with another one in its value', argument('v', '4 --anonymous-auth=true')],
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
    /^cannot change the configuration; everything was restored: cannot use .ssh\/authorized_keys of user alice: /,
  );
  expect(await contents(host)).toEqual(before);
});

test('what cannot be placed has all before it put back', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  await mkdir(host.at('etc/demo/.more.refit/in-the-way'), { recursive: true });
  host.start();
  const { failure } = await host.answer(await host.ask(...ITEMS));
  expect(failure).toMatch(/^cannot change the configuration; everything was restored: /);
  expect((await contents(host))[0]).toBe(before[0]);
});

test('where an agent was cut off in the middle, the next one puts all back, and begins anew', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  // The state that an agent leaves if it ends before it has written its last file.
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
    async () =>
      await Promise.resolve(
        expect(next.log.join('\n')).toContain('was interrupted; everything was restored'),
      ),
  );
  expect(await host.read('state/journal-configuration.json')).toBeUndefined();
  const uid = await host.ask(...ITEMS);
  expect(await host.answer(uid)).toEqual({});
  expect(await contents(host)).toEqual(AFTER);
  await rm(host.at('state'), { recursive: true });
});

const ARGUMENTS = [argument('v', '4'), argument('max-open-files', '5000')];
const OLD_FLAGS = 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.1 --v=2"\n';
const NEW_FLAGS = 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.1 --v=4 --max-open-files=5000"\n';

const restarted = async (host: ConfiguredHost, times: number): Promise<void> =>
  await host.until(async () => expect(await host.restarts()).toBe(times));

test('arguments of the kubelet: one restart, done once it is Ready, and none where nothing changes', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  host.start();
  const first = await host.ask(...ITEMS, ...ARGUMENTS);
  await restarted(host, 1);
  expect(await host.read(FLAGS)).toBe(NEW_FLAGS);
  // A kubelet that starts at once, and then sends no status for the next five minutes.
  await host.becomeReady('True', (await stat(host.at('systemctl'))).mtimeMs);
  expect(await host.answer(first)).toEqual({});
  expect(await host.answer(await host.ask(...ITEMS, ...ARGUMENTS))).toEqual({});
  expect(await host.answer(await host.ask(file('/etc/demo/old', 'newer\n'), ...ARGUMENTS))).toEqual(
    {},
  );
  expect(await host.restarts()).toBe(1);
});

test('an argument that the kubelet does not take: nothing is changed, and it is not restarted', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  host.start();
  const { failure } = await host.answer(await host.ask(...ITEMS, argument('registry-qps', 'bad')));
  expect(failure).toBe('kubelet --registry-qps=bad --help ended with code 1: invalid argument');
  expect([await contents(host), await host.read(FLAGS), await host.restarts()]).toEqual([
    before,
    OLD_FLAGS,
    0,
  ]);
});

test('a file without a folder beside arguments: nothing is changed, and the agent says why', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  host.start();
  const { failure } = await host.answer(
    await host.ask(file('/etc/demo/none/x', 'x'), ...ARGUMENTS),
  );
  expect(failure).toContain('ENOENT');
  expect([await host.read(FLAGS), await host.restarts()]).toEqual([OLD_FLAGS, 0]);
});

test('a kubelet that does not come up gets all back, once, and the report has its own reason', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  host.start('--ready-timeout', '1500ms');
  // This status comes from the kubelet that ran before the restart.
  await host.becomeReady();
  const { failure } = await host.answer(await host.ask(...ITEMS, ...ARGUMENTS));
  expect(failure).toMatch(
    /^cannot change the configuration; everything was restored: the kubelet was not Ready .* after its restart: E1122 .*err="it is too large"$/,
  );
  expect([await contents(host), await host.read(FLAGS), await host.restarts()]).toEqual([
    before,
    OLD_FLAGS,
    2,
  ]);
});

test('a kubelet that dies of its arguments is not up, whatever the one before said last', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  // systemd reports that the kubelet is not active, because it waits before the next start.
  await host.program('systemctl', `${RESTART}; case $1 in is-active) exit 3 ;; esac`);
  host.start('--ready-timeout', '1500ms');
  const uid = await host.ask(...ARGUMENTS);
  await restarted(host, 1);
  await host.becomeReady();
  expect((await host.answer(uid)).failure).toContain('the kubelet was not Ready');
  expect([await host.read(FLAGS), await host.restarts()]).toEqual([OLD_FLAGS, 2]);
});

test('a failure that cannot be reported is not carried out again for that', async () => {
  let refuses = false;
  const fault: ApiFaultsOptions['fault'] = ({ method }) =>
    refuses && method === 'PATCH' ? { kind: 'answer', code: 403, reason: 'Forbidden' } : undefined;
  const faults = await startApiFaults({ upstream: { url: cluster.url }, fault });
  try {
    const kubeconfig = await cluster.kubeconfigFor(faults.url);
    await using host = await ConfiguredHost.arrive({ admin: cluster.admin, kubeconfig });
    const agent = host.start('--ready-timeout', '1500ms');
    const uid = await host.ask(...ARGUMENTS);
    await restarted(host, 1);
    refuses = true;
    const tries = (): number =>
      agent.log.filter((line) => line.includes('cannot finish a change of the configuration'))
        .length;
    await host.until(async () => await Promise.resolve(expect(tries()).toBeGreaterThan(2)));
    refuses = false;
    expect((await host.answer(uid)).failure).toContain('the kubelet was not Ready');
    expect([await host.read(FLAGS), await host.restarts()]).toEqual([OLD_FLAGS, 2]);
  } finally {
    await faults.stop();
  }
});

test('a file that cannot be put back is tried again, and the kubelet is not restarted for it again', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const first = host.start();
  await host.ask(...ITEMS, ...ARGUMENTS);
  await restarted(host, 1);
  await first.stop('SIGKILL');
  await mkdir(host.at('etc/demo/.more.refit/in-the-way'), { recursive: true });
  const next = host.start('--ready-timeout', '300ms');
  const tries = (): number =>
    next.log.filter((line) => line.includes('cannot finish a change of the configuration')).length;
  await host.until(async () => await Promise.resolve(expect(tries()).toBeGreaterThan(2)));
  expect([await host.read(FLAGS), await host.restarts()]).toEqual([OLD_FLAGS, 2]);
});

test('arguments that somebody else wrote since then stay, without a restart', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const first = host.start();
  await host.ask(...ARGUMENTS);
  await restarted(host, 1);
  await first.stop('SIGKILL');
  const theirs = NEW_FLAGS.replace('5000', '7000');
  await host.put(FLAGS, theirs);
  const uid = await host.ask(...ITEMS);
  host.start();
  expect(await host.answer(uid)).toEqual({});
  expect([await host.read(FLAGS), await host.restarts()]).toEqual([theirs, 1]);
});

test('a control plane whose kubelet is down gets the old arguments back without an API server', async () => {
  const kubeconfig = await cluster.kubeconfigFor('https://127.0.0.1:1');
  await using host = await ConfiguredHost.arrive({ admin: cluster.admin, kubeconfig });
  const state = (text: string) => ({
    content: Buffer.from(text).toString('base64'),
    mode: 0o644,
    gid: process.getgid?.(),
  });
  const journal = [[`/${FLAGS}`, state(OLD_FLAGS), state(NEW_FLAGS)]];
  await host.put(FLAGS, NEW_FLAGS);
  await host.put('state/journal-configuration.json', JSON.stringify(journal), 0o600);
  host.start();
  await restarted(host, 1);
  expect(await host.read(FLAGS)).toBe(OLD_FLAGS);
});

test('a kubelet is put back where no API server answers any more', async () => {
  let isDown = false;
  const fault: ApiFaultsOptions['fault'] = () =>
    isDown ? { kind: 'answer', code: 503, reason: 'x' } : undefined;
  const faults = await startApiFaults({ upstream: { url: cluster.url }, fault });
  try {
    const kubeconfig = await cluster.kubeconfigFor(faults.url);
    await using host = await ConfiguredHost.arrive({ admin: cluster.admin, kubeconfig });
    host.start('--ready-timeout', '1500ms');
    const uid = await host.ask(...ARGUMENTS);
    await restarted(host, 1);
    isDown = true;
    await restarted(host, 2);
    expect(await host.read(FLAGS)).toBe(OLD_FLAGS);
    isDown = false;
    expect((await host.answer(uid)).failure).toContain('the kubelet was not Ready');
  } finally {
    await faults.stop();
  }
});

test('killed before the kubelet is up, and killed while that is put back: the last agent does it all', async () => {
  await using host = await ConfiguredHost.arrive(cluster);
  const before = await contents(host);
  const first = host.start();
  const uid = await host.ask(...ITEMS, ...ARGUMENTS);
  await restarted(host, 1);
  await first.stop('SIGKILL');
  // The parent of `systemctl` is the agent. So this agent is killed after it has written the file and before the
  // restart ends.
  await host.program('systemctl', `${RESTART}; kill -9 $PPID`);
  await host.start().exited;
  expect([await contents(host), await host.read(FLAGS), await host.restarts()]).toEqual([
    before,
    OLD_FLAGS,
    2,
  ]);
  await host.program('systemctl', RESTART);
  const last = host.start();
  // The agent restarts the kubelet again, because it cannot know whether the interrupted restart happened. Then it
  // restarts the kubelet for the change.
  await restarted(host, 3);
  await host.becomeReady();
  await restarted(host, 4);
  expect(last.log.join('\n')).toContain('was interrupted; everything was restored');
  await host.becomeReady();
  expect(await host.answer(uid)).toEqual({});
  expect([await contents(host), await host.read(FLAGS)]).toEqual([AFTER, NEW_FLAGS]);
});
