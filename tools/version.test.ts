/** Tests in a clone that `npm version` changes every place that has the version, and makes a commit and a tag. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { withRelease } from './version.ts';

const ROOT = join(import.meta.dirname, '..');
/** The file with the hash of the lock file from which the packages were installed. */
const MARK = '.refit-lock';

/**
 * Gives a clone the packages of this repository. Each package is a link. The clone has its own mark of
 * tools/install.mjs, because a lock file that is changed here and not committed yet must not start `npm ci` in the
 * clone. That `npm ci` would remove the packages here.
 */
function linkPackages(clone: string): void {
  const modules = join(clone, 'node_modules');
  mkdirSync(modules);
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (name !== MARK) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  const lock = readFileSync(join(clone, 'package-lock.json'));
  writeFileSync(join(modules, MARK), createHash('sha256').update(lock).digest('hex'));
}

test('npm version makes the commit and the tag of a release', () => {
  const directory = mkdtempSync(join(tmpdir(), 'refit-version-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const clone = join(directory, 'clone');
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', clone, ...args], { encoding: 'utf8' }).trim();
  execFileSync('git', ['clone', '--quiet', '--depth=1', `file://${ROOT}`, clone]);
  linkPackages(clone);
  for (const [name, value] of [
    ['user.name', 'Somebody'],
    ['user.email', 'somebody@example.com'],
  ] as const)
    git('config', name, value);
  // Right after a release, nothing is unreleased yet.
  const changelog = join(clone, 'CHANGELOG.md');
  const [before, after = ''] = readFileSync(changelog, 'utf8').split('## Unreleased\n');
  writeFileSync(changelog, `${before}## Unreleased\n\n* Refit does something new.\n${after}`);
  git('commit', '--quiet', '--all', '--message=Change something');
  execFileSync('npm', ['version', '99.1.2'], { cwd: clone, stdio: 'pipe' });

  expect(git('status', '--porcelain')).toBe('');
  expect(git('describe', '--exact-match')).toBe('v99.1.2');
  expect(git('log', '-1', '--format=%s')).toBe('Release 99.1.2');
  const read = (path: string): string => readFileSync(join(clone, path), 'utf8');
  expect(JSON.parse(read('package.json'))).toMatchObject({ version: '99.1.2' });
  expect(JSON.parse(read('package-lock.json'))).toMatchObject({ version: '99.1.2' });
  expect(read('deploy/chart/Chart.yaml')).toContain('\nversion: 99.1.2\nappVersion: 99.1.2\n');
  expect(read('deploy/chart/manifests/k0s/controller.yaml')).toContain('image: refit:99.1.2\n');
  expect(read('CHANGELOG.md')).toMatch(
    /\n## Unreleased\n\n## 99\.1\.2 \(\d{4}-\d\d-\d\d\)\n\n\* Refit does something new\.\n/,
  );
});

test('a release without anything new is refused', () => {
  expect(() =>
    withRelease('# Changelog\n\n## Unreleased\n\n## 1.0.0 (2026-01-01)\n', '1.0.1', '2026-01-02'),
  ).toThrow('CHANGELOG.md has nothing under "## Unreleased"');
});
