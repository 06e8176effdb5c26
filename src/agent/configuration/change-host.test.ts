/**
 * Tests what is on the disk when an agent ends in the middle of a change, and that the next agent restores the old
 * files.
 */
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { changeHost, putBack } from './change-host.ts';
import { KUBELET_FLAGS } from './kubelet.ts';

const fileOf = (name: string, content: string) => ({
  name,
  content: Buffer.from(content).toString('base64'),
  mode: 0o644,
});
const ITEMS = [fileOf('/etc/a', 'new'), fileOf('/etc/b', 'new'), fileOf('/etc/c', 'new')];
const STOPPED = AbortSignal.abort(new Error('the agent ends'));
const RUNNING = new AbortController().signal;

let root = '';
/** What the agent did with the kubelet, in order. */
let kubelet: string[] = [];
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'refit-change-')));
  for (const folder of ['etc', 'state', 'var/lib/kubelet'])
    await mkdir(join(root, folder), { recursive: true });
  kubelet = [];
  await writeFile(join(root, 'etc/a'), 'old');
});
afterEach(async () => await rm(root, { recursive: true }));

const parts = (restart = async () => await Promise.resolve()) => ({
  root,
  journal: join(root, 'state/journal-configuration.json'),
  checkKubelet: async (args: readonly string[]) =>
    void kubelet.push(await Promise.resolve(args.join(' '))),
  restartKubelet: async () => {
    kubelet.push(`restarted with ${await readFile(root + KUBELET_FLAGS, 'utf8')}`);
    await restart();
  },
});
const blocked = (): string => join(root, 'etc/.b.refit');
/** Makes every write to /etc/b fail. */
const block = async (): Promise<unknown> =>
  await mkdir(join(blocked(), 'in-the-way'), { recursive: true });
const unblock = async (): Promise<void> => await rm(blocked(), { recursive: true });

async function everything(): Promise<string[]> {
  const names = (await readdir(join(root, 'etc'))).filter((name) => name !== '.b.refit');
  return await Promise.all(
    names.map(async (name) => `${name}: ${await readFile(join(root, 'etc', name), 'utf8')}`),
  );
}

test('an agent that ends between two files has the first one put back', async () => {
  await block();
  await expect(changeHost(parts(), ITEMS, STOPPED)).rejects.toThrow('the agent ends');
  expect(await everything()).toEqual(['a: new']);
  await unblock();
  expect(await putBack(parts())).toBe(true);
  expect(await everything()).toEqual(['a: old']);
  expect(await putBack(parts())).toBe(false);
});

test('a file that cannot be put back does not keep other files from it, and is tried again', async () => {
  await block();
  await expect(changeHost(parts(), [...ITEMS, fileOf('/etc/d', 'new')], STOPPED)).rejects.toThrow(
    'the agent ends',
  );
  await mkdir(join(root, 'etc/.a.refit/in-the-way'), { recursive: true });
  await expect(putBack(parts())).rejects.toThrow('a.refit');
  await rm(join(root, 'etc/.a.refit'), { recursive: true });
  await unblock();
  expect(await putBack(parts())).toBe(true);
  expect(await everything()).toEqual(['a: old']);
});

test('a file that somebody else has written since then is not put back', async () => {
  await block();
  await expect(changeHost(parts(), ITEMS, STOPPED)).rejects.toThrow('the agent ends');
  await unblock();
  await writeFile(join(root, 'etc/a'), 'of an admin');
  await writeFile(join(root, 'etc/c'), 'of an admin, too');
  expect(await putBack(parts())).toBe(true);
  expect(await everything()).toEqual(['a: of an admin', 'c: of an admin, too']);
});

test('the error of a failed change says that all files were put back', async () => {
  await block();
  await expect(changeHost(parts(), ITEMS, RUNNING)).rejects.toThrow(
    'cannot change the configuration; everything was restored',
  );
  expect(await everything()).toEqual(['a: old']);
});

test('after a change its journal is kept beside, and counts no more', async () => {
  await changeHost(parts(), ITEMS, RUNNING);
  expect(await everything()).toEqual(['a: new', 'b: new', 'c: new']);
  expect(await readdir(join(root, 'state'))).toEqual(['journal-configuration.json.previous']);
  expect(await putBack(parts())).toBe(false);
});

test('a file that cannot be replaced keeps all from being changed', async () => {
  await mkdir(join(root, 'etc/c'));
  await expect(changeHost(parts(), ITEMS, RUNNING)).rejects.toThrow('etc/c must be a regular file');
  expect(await readFile(join(root, 'etc/a'), 'utf8')).toBe('old');
  expect(await readdir(join(root, 'state'))).toEqual([]);
});

const V4 = [...ITEMS, { name: 'kubelet:v', content: '4', mode: 0 }];
const [OLD, NEW] = ['2', '4'].map((level) => `KUBELET_KUBEADM_ARGS="--v=${level}"`);
const down = async (): Promise<never> => await Promise.reject(new Error('it is down'));

test('a host without a file of arguments is not touched', async () => {
  await expect(changeHost(parts(), V4, RUNNING)).rejects.toThrow(`${KUBELET_FLAGS} has no line`);
  expect([await everything(), kubelet]).toEqual([['a: old'], []]);
});

test.each([
  ['with a file of arguments', OLD ?? '', 'ENOENT'],
  ['without one', '', 'has no line'],
])(
  'the agent goes on if the folder of a file is missing on a host %s',
  async (_which, flags, failure) => {
    await writeFile(root + KUBELET_FLAGS, flags);
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    await expect(changeHost(parts(), [fileOf('/none/a', 'new'), ...V4], RUNNING)).rejects.toThrow(
      failure,
    );
    await new Promise((resolve) => void setImmediate(resolve));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  },
);

test('a kubelet that comes up with neither arguments is restarted once with each', async () => {
  await writeFile(root + KUBELET_FLAGS, OLD ?? '');
  await expect(changeHost(parts(down), V4, RUNNING)).rejects.toMatchObject({
    message: 'cannot change the configuration; everything was restored',
    cause: { message: 'it is down' },
  });
  expect(await putBack(parts(down))).toBe(false);
  expect(kubelet).toEqual(['--v=4', `restarted with ${NEW}`, `restarted with ${OLD}`]);
  expect(await readdir(join(root, 'state'))).toEqual([]);
});

test('an agent that ends before the arguments are written leaves nothing to restart', async () => {
  await writeFile(root + KUBELET_FLAGS, OLD ?? '');
  await block();
  await expect(changeHost(parts(), V4, STOPPED)).rejects.toThrow('the agent ends');
  await unblock();
  expect(await putBack(parts())).toBe(true);
  expect([await everything(), kubelet]).toEqual([['a: old'], ['--v=4']]);
});

test('what cannot be put back does not have the kubelet restarted again and again', async () => {
  await writeFile(root + KUBELET_FLAGS, OLD ?? '');
  await expect(changeHost(parts(down), V4, STOPPED)).rejects.toThrow('the agent ends');
  await block();
  for (let tries = 0; tries < 3; tries++) await expect(putBack(parts())).rejects.toThrow('b.refit');
  expect(kubelet).toEqual(['--v=4', `restarted with ${NEW}`, `restarted with ${OLD}`]);
  await unblock();
  expect(await putBack(parts())).toBe(true);
  expect(kubelet).toHaveLength(3);
});
