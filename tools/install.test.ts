/** Tests when packages are installed, with a stand-in for npm that writes one line for each call. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type RunResult, run } from './controlplane/run.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'refit-install-'));
  for (const folder of ['tools', 'bin']) mkdirSync(join(root, folder));
  copyFileSync(join(import.meta.dirname, 'install.mjs'), join(root, 'tools', 'install.mjs'));
  writeFileSync(join(root, 'package-lock.json'), '{}');
  npmDoes('mkdir -p node_modules');
});

afterEach(() => rmSync(root, { recursive: true }));

function npmDoes(command: string): void {
  const npm = join(root, 'bin', 'npm');
  writeFileSync(npm, `#!/bin/sh\necho "$1 PATH=$PATH" >> calls\n${command}\n`);
  chmodSync(npm, 0o755);
}

async function install(): Promise<RunResult> {
  const path = [join(root, 'node_modules', '.bin'), join(root, 'bin'), '/usr/bin', '/bin'].join(
    delimiter,
  );
  return await run(process.execPath, [join(root, 'tools', 'install.mjs')], {
    environment: { PATH: path },
  });
}

function calls(): string[] {
  const file = join(root, 'calls');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
}

test('packages are installed once for each lock file', async () => {
  expect(await install()).toMatchObject({ ok: true, stdout: '' });
  expect(calls()).toHaveLength(1);
  expect(await install()).toEqual({ ok: true, stdout: '', stderr: '' });
  expect(calls()).toHaveLength(1);
  writeFileSync(join(root, 'package-lock.json'), '{"changed":true}');
  expect(await install()).toMatchObject({ ok: true });
  expect(calls()).toHaveLength(2);
});

test('packages that somebody removed are installed again', async () => {
  await install();
  rmSync(join(root, 'node_modules'), { recursive: true });
  await install();
  expect(calls()).toHaveLength(2);
});

test('it is npm ci, by no Node that it would remove', async () => {
  await install();
  expect(calls()[0]).toMatch(/^ci /);
  expect(calls()[0]).not.toContain('node_modules');
});

test('a failure is passed on, and tried again', async () => {
  npmDoes('mkdir -p node_modules; echo no network >&2; exit 3');
  const failed = await install();
  expect(failed.ok).toBe(false);
  expect(failed.stderr).toContain('no network');
  expect(failed.stderr).toContain('npm ci failed with exit code 3');
  npmDoes('mkdir -p node_modules');
  expect((await install()).ok).toBe(true);
});

test('a machine without npm gets one clear line', async () => {
  rmSync(join(root, 'bin', 'npm'));
  const { ok, stderr } = await run(process.execPath, [join(root, 'tools', 'install.mjs')], {
    environment: { PATH: join(root, 'bin') },
  });
  expect(ok).toBe(false);
  expect(stderr).toContain('npm could not be started: spawn npm ENOENT');
});
