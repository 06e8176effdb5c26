/**
 * Tests what happens on a host whose `cp` cannot copy all attributes. Scripts that replace `cp` print the messages of
 * real `cp` programs.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { copyAttributes } from './file-attributes.ts';

let directory = '';
let from = '';
let to = '';
let told: string[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-attributes-'));
  from = join(directory, 'files/from');
  to = join(directory, 'files/to');
  told = [];
  await mkdir(join(directory, 'files'));
  await mkdir(join(directory, 'programs'));
  await writeFile(from, 'old', { mode: 0o750 });
  await writeFile(to, 'new', { mode: 0o600 });
  vi.stubEnv('PATH', `${join(directory, 'programs')}:${process.env['PATH']}`);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true });
});

async function program(name: string, body: string): Promise<void> {
  await writeFile(join(directory, 'programs', name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
}

const copy = async (): Promise<void> =>
  await copyAttributes(from, to, { cannot: (problem) => told.push(problem) });

const mode = async (): Promise<number> => (await stat(to)).mode & 0o777;

test.each([
  'cannot preserve extended attributes, cp is built without xattr support',
  'cannot preserve security context without an SELinux-enabled kernel',
])('a cp that knows the option and refuses it copies the rest: %s', async (words) => {
  await program(
    'cp',
    `case "$*" in *xattr*) echo 'cp: ${words}' >&2; exit 1 ;; esac; exec /bin/cp "$@"`,
  );
  await copy();
  expect(await mode()).toBe(0o750);
  expect(told.at(-1)).toBe(`cp on this host cannot copy mode, ownership, xattr: cp: ${words}`);
  expect(await readdir(join(directory, 'files'))).toEqual(['from', 'to']);
});

test('a cp without the option copies no attributes, and that is reported', async () => {
  await program('cp', 'echo "cp: unrecognized option: attributes-only" >&2; exit 1');
  await copy();
  expect(await mode()).toBe(0o600);
  expect(told.at(-1)).toBe(
    'cp on this host cannot copy mode, ownership: cp: unrecognized option: attributes-only',
  );
});

test('a cp that fails on this file alone is an error', async () => {
  await program(
    'cp',
    'case "$*" in *.refit-attributes-*) exit 0 ;; esac; echo "cp: no room for attributes" >&2; exit 1',
  );
  await expect(copy()).rejects.toThrow(
    `${to} cannot get the owner, mode and extended attributes of ${from}: cp: no room for attributes`,
  );
  expect(told).toEqual([]);
});

test('the signatures of the old content do not stay on a new one', async () => {
  const log = join(directory, 'log');
  await program('setfattr', `echo "$*" >>${log}; exit 1`);
  await copyAttributes(from, to, { cannot: (problem) => told.push(problem), isSameContent: true });
  await expect(readFile(log)).rejects.toThrow('ENOENT');
  await copy();
  expect((await readFile(log, 'utf8')).trim().split('\n')).toEqual([
    `-x security.ima -- ${to}`,
    `-x security.evm -- ${to}`,
  ]);
});
