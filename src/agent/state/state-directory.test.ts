/** Tests that the files of a first start survive a power loss: the parents of new directories are synced as well. */
import { existsSync } from 'node:fs';
import fsPromises, { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStateDirectory, pathsIn, removeState } from './state-directory.ts';

let directory: string;
const synced: string[] = [];
const { open } = fsPromises;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-state-'));
  synced.length = 0;
  fsPromises.open = async (path, ...rest) => {
    const handle = await open(path, ...rest);
    const sync = handle.sync.bind(handle);
    handle.sync = async () => {
      synced.push(relative(directory, String(path)));
      await sync();
    };
    return handle;
  };
  syncBuiltinESMExports();
});
afterEach(async () => {
  fsPromises.open = open;
  syncBuiltinESMExports();
  await rm(directory, { recursive: true });
});

test('each parent of a new state directory is synced, from the outermost on', async () => {
  await openStateDirectory(join(directory, 'lib', 'refit'), join(directory, 'run'));
  expect(synced.filter((path) => path === '' || path === 'lib')).toEqual(['', 'lib', '']);
});

test('a state directory that exists already needs no sync', async () => {
  await openStateDirectory(join(directory, 'lib'), join(directory, 'lib'));
  synced.length = 0;
  await openStateDirectory(join(directory, 'lib'), join(directory, 'lib')).catch(() => undefined);
  expect(synced.filter((path) => path === '')).toEqual([]);
});

test('what an agent wrote is removed, and the directory unless it has files of others, such as of a kubeadm run', async () => {
  const state = join(directory, 'left');
  await openStateDirectory(state, join(directory, 'run'));
  await writeFile(join(state, 'kubeadm.journal'), '');
  for (const path of Object.values(pathsIn(state))) await writeFile(`${path}.new`, '');
  await removeState(state);
  expect(await readdir(state)).toEqual(['kubeadm.journal']);
  await rm(join(state, 'kubeadm.journal'));
  await removeState(state);
  expect(existsSync(state)).toBe(false);
});
