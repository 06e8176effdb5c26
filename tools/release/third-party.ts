/**
 * Lists the third-party parts that Refit ships: in a bill of materials (CycloneDX), and with the texts of the licences.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import type { DebianPackage } from './debian.ts';
import type { Lock, LockedPackage } from './node-package.ts';

export interface BundledPackage extends LockedPackage {
  readonly name: string;
}

/**
 * Returns the npm packages that the program contains: the dependencies in package.json, and the dependencies of these
 * packages.
 */
export function bundledPackages(lock: Lock): BundledPackage[] {
  const found = new Map<string, BundledPackage>();
  const add = (dependencies: LockedPackage['dependencies']): void => {
    for (const name of Object.keys(dependencies ?? {})) {
      const locked = lock.packages[`node_modules/${name}`];
      if (locked === undefined)
        throw new RefitError('REFIT_FILE', `package-lock.json has no package ${name}`);
      if (found.has(name)) continue;
      found.set(name, { ...locked, name });
      add(locked.dependencies);
    }
  };
  add(lock.packages['']?.dependencies);
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Returns the texts of all licences. `root` is the folder of the repository. `node` is the folder of Node's npm
 * package; undefined if Node.js is not shipped.
 */
export async function licenceTexts(
  packages: readonly BundledPackage[],
  root: string,
  node?: string,
): Promise<string> {
  const sections = await Promise.all(
    packages.map(async ({ name, version, license = '' }) => {
      const text = await licenceIn(join(root, 'node_modules', name), license);
      return section(`${name} ${version} (${license})`, text);
    }),
  );
  const ofNode =
    node === undefined ? [] : [section('Node.js, and what it contains', await licenceIn(node))];
  return ['Refit contains the following works of others.\n', ...sections, ...ofNode].join('\n');
}

function section(title: string, text: string): string {
  return `${'='.repeat(80)}\n${title}\n${'='.repeat(80)}\n\n${text.trim()}\n`;
}

/**
 * Returns the text of the licence. Some packages have no file for it. They name only the licence and the owner at the
 * end of the README.
 */
async function licenceIn(folder: string, license?: string): Promise<string> {
  const files = await readdir(folder);
  const name = files.find((file) => /^licen[cs]e/i.test(file));
  if (name !== undefined) return await readFile(join(folder, name), 'utf8');
  const readme = license === 'MIT' ? files.find((file) => /^readme/i.test(file)) : undefined;
  const text = readme === undefined ? '' : await readFile(join(folder, readme), 'utf8');
  const [owner] = /^Copyright .+$/m.exec(text) ?? [];
  if (owner === undefined) throw new RefitError('REFIT_FILE', `${folder} has no licence`);
  // After the line with the owner, the text of this licence is the same in all packages.
  const other = await readFile(join(folder, '..', 'commander', 'LICENSE'), 'utf8');
  return `${owner}\n\n${other.slice(other.indexOf('Permission is'))}`;
}

export interface Materials {
  readonly version: string;
  /** Seconds since 1970. */
  readonly time: number;
  readonly node: LockedPackage;
  readonly npm: readonly BundledPackage[];
  readonly debian: readonly DebianPackage[];
}

/** Returns a bill of materials as CycloneDX 1.6. The same materials give the same text. */
export function billOfMaterials({ version, time, node, npm, debian }: Materials): string {
  const components = [
    component('nodejs', node.version, `pkg:generic/nodejs@${node.version}`, { license: 'MIT' }),
    ...npm.map(({ name, version: of, license, integrity }) =>
      component(name, of, `pkg:npm/${name.replace('@', '%40')}@${of}`, {
        license,
        hash: ['SHA-512', hexOf(integrity)],
      }),
    ),
    ...debian.map(({ name, version: of, arch, sha256 }) =>
      component(
        name,
        of,
        `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(of)}?arch=${arch}`,
        {
          hash: ['SHA-256', sha256],
        },
      ),
    ),
  ];
  const metadata = {
    timestamp: new Date(time * 1000).toISOString(),
    component: {
      type: 'application',
      'bom-ref': 'refit',
      name: 'refit',
      version,
      purl: `pkg:npm/refit@${version}`,
    },
  };
  const dependencies = [{ ref: 'refit', dependsOn: components.map(({ purl }) => purl) }];
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify([metadata, components]))}`;
  const bill = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber,
    version: 1,
    metadata,
    components,
    dependencies,
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

interface Details {
  readonly license?: string | undefined;
  readonly hash?: readonly [algorithm: string, hex: string];
}

function component(name: string, version: string, purl: string, { license, hash }: Details) {
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(hash && { hashes: [{ alg: hash[0], content: hash[1] }] }),
    ...(license !== undefined && { licenses: [{ license: { id: license } }] }),
  };
}

function hexOf(integrity: string): string {
  return Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
}

/** Returns a UUID of version 8 (RFC 9562), which allows our own contents: here the hash of `text`. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
