/** Tests that files are changed in an order that survives a power loss, and that every change can be repeated. */
import * as fsPromises from 'node:fs/promises';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Files } from './durable-files.ts';
import { replaceDurably, writeDurably } from './durable-files.ts';

let directory: string;
let calls: string[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-durable-'));
  calls = [];
});
afterEach(async () => await rm(directory, { recursive: true }));

const at = (name: string): string => join(directory, name);
const nameOf = (path: unknown): string => (path === directory ? '.' : basename(String(path)));

/**
 * Returns the real file functions, which record each call in `calls`. `failing` maps the name of a function to the
 * error code with which it fails.
 */
function recorded(failing: Partial<Record<keyof Files, string>> = {}): Files {
  const note = (call: string): void => void calls.push(call);
  const run = async <T>(kind: keyof Files, paths: unknown[], act: () => Promise<T>): Promise<T> => {
    note(`${kind} ${paths.map(nameOf).join(' ')}`);
    const code = failing[kind];
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    return await act();
  };
  return {
    ...fsPromises,
    link: async (from, to) =>
      await run('link', [from, to], async () => await fsPromises.link(from, to)),
    rename: async (from, to) =>
      await run('rename', [from, to], async () => await fsPromises.rename(from, to)),
    copyFile: async (from, to) =>
      await run('copyFile', [from, to], async () => await fsPromises.copyFile(from, to)),
    rm: async (path, options) =>
      await run('rm', [path], async () => await fsPromises.rm(path, options)),
    open: async (path, flags, mode) =>
      await run('open', [path], async () => {
        const handle = await fsPromises.open(path, flags, mode);
        const sync = handle.sync.bind(handle);
        handle.sync = async () => {
          note(`sync ${nameOf(path)}`);
          await sync();
        };
        return handle;
      }),
  };
}

/** Returns the calls that matter for a power loss: the syncs, and the calls that change names. */
const order = (): string[] => calls.filter((call) => !/^(open|rm)/.test(call));

test('a file is written aside, synced, renamed, and its directory synced', async () => {
  await writeDurably(at('journal.json'), 'new', recorded());
  expect(order()).toEqual([
    'sync journal.json.new',
    'rename journal.json.new journal.json',
    'sync .',
  ]);
  expect(await readFile(at('journal.json'), 'utf8')).toBe('new');
});

test.each(['open', 'rename'] as const)('where %s fails the old text stays', async (call) => {
  await writeDurably(at('journal.json'), 'old');
  await expect(
    writeDurably(at('journal.json'), 'new', recorded({ [call]: 'ENOSPC' })),
  ).rejects.toThrow('ENOSPC');
  expect(await readFile(at('journal.json'), 'utf8')).toBe('old');
});

test('a replacement takes one rename of a second name, and the source stays', async () => {
  await writeFile(at('k0s'), 'old');
  await writeFile(at('k0s.tmp'), 'new', { mode: 0o755 });
  await replaceDurably(at('k0s.tmp'), at('k0s'), recorded());
  expect(order()).toEqual(['link k0s.tmp k0s.new', 'rename k0s.new k0s', 'sync .']);
  expect(await readFile(at('k0s'), 'utf8')).toBe('new');
  expect((await stat(at('k0s'))).ino).toBe((await stat(at('k0s.tmp'))).ino);
});

test('a replacement that is repeated changes nothing and leaves nothing', async () => {
  await writeFile(at('k0s'), 'old');
  await writeFile(at('k0s.tmp'), 'new');
  await writeFile(at('k0s.new'), 'left by a crash');
  for (let round = 0; round < 3; round++) await replaceDurably(at('k0s.tmp'), at('k0s'));
  expect(await readFile(at('k0s'), 'utf8')).toBe('new');
  expect((await readdir(directory)).toSorted()).toEqual(['k0s', 'k0s.tmp']);
});

test.each(['EPERM', 'EXDEV', 'EMLINK', 'ENOTSUP'])(
  'without hard links (%s) a synced copy is renamed',
  async (code) => {
    await writeFile(at('k0s'), 'old');
    await writeFile(at('k0s.tmp'), 'new', { mode: 0o755 });
    await replaceDurably(at('k0s.tmp'), at('k0s'), recorded({ link: code }));
    expect(order().slice(1)).toEqual([
      'copyFile k0s.tmp k0s.new',
      'sync k0s.new',
      'rename k0s.new k0s',
      'sync .',
    ]);
    expect((await stat(at('k0s'))).mode & 0o777).toBe(0o755);
  },
);

test.each(['link', 'rename'] as const)(
  'where %s fails the target stays, and nothing is left',
  async (call) => {
    await writeFile(at('k0s'), 'old');
    await writeFile(at('k0s.tmp'), 'new');
    await expect(
      replaceDurably(at('k0s.tmp'), at('k0s'), recorded({ [call]: 'EIO' })),
    ).rejects.toThrow('EIO');
    expect(await readFile(at('k0s'), 'utf8')).toBe('old');
    expect((await readdir(directory)).toSorted()).toEqual(['k0s', 'k0s.tmp']);
  },
);
