/** Tests that a release lists all third-party parts that it contains, with version, hash and licence. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readLock } from './node-package.ts';
import { billOfMaterials, bundledPackages, licenceTexts } from './third-party.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const npm = bundledPackages(await readLock(ROOT));
const NODE = { version: '26.10.0', integrity: '' };
const LIBC = {
  name: 'libstdc++6',
  version: '12.2.0-14+deb12u1',
  arch: 'amd64',
  sha256: 'ab'.repeat(32),
};

interface Bill {
  readonly serialNumber: string;
  readonly components: readonly {
    readonly purl: string;
    readonly hashes?: readonly { readonly content: string }[];
    readonly licenses?: readonly { readonly license: { readonly id: string } }[];
  }[];
}

const billOf = (time: number): Bill =>
  JSON.parse(billOfMaterials({ version: '1.2.3', time, node: NODE, npm, debian: [LIBC] })) as Bill;

test('packages that package.json names, and those that they need, count; tools do not', () => {
  const names = npm.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['commander', 'prom-client', 'yaml', 'zod', 'tdigest']),
  );
  expect(names).not.toContain('vitest');
});

test('the bill has Node.js, each npm package with hash and licence, and each Debian package', () => {
  const { components } = billOf(0);
  const purls = components.map(({ purl }) => purl);
  expect(purls[0]).toBe('pkg:generic/nodejs@26.10.0');
  expect(purls.at(-1)).toBe('pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64');
  const packages = components.slice(1, -1);
  expect(packages).toHaveLength(npm.length);
  for (const { purl, hashes, licenses } of packages) {
    expect(purl).toMatch(/^pkg:npm\/[^@]+@\d/);
    expect(hashes?.[0]?.content).toMatch(/^[0-9a-f]{128}$/);
    expect(licenses?.[0]?.license.id).toMatch(/^[A-Z\d]/);
  }
});

test('its serial number depends on the content only', () => {
  expect(billOf(0).serialNumber).toMatch(
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  expect(billOf(0).serialNumber).toBe(billOf(0).serialNumber);
  expect(billOf(1).serialNumber).not.toBe(billOf(0).serialNumber);
});

test('the text of every licence is there, that of Node.js too', async () => {
  const text = await licenceTexts(npm, ROOT, join(ROOT, 'node_modules', 'node'));
  for (const { name, version } of npm) expect(text).toContain(`\n${name} ${version} (`);
  expect(
    text.match(/Permission is hereby granted|Apache License|Permission to use/g)?.length,
  ).toBeGreaterThan(npm.length);
  expect(text).toContain('OpenSSL');
});
