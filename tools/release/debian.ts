/**
 * Fetches the files that the image needs in addition to Refit: shared libraries and nsenter. They come from packages of
 * this machine's Debian release, for any architecture.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { join, relative } from 'node:path';
import { cacheFolder, must } from './commands.ts';
import type { TarEntry } from './tar.ts';

/** The packages with the libraries that `ldd node` prints. */
const FOR_NODE = ['libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1'];
/**
 * The packages with nsenter and the libraries that `ldd nsenter` prints. The pod of the agent uses nsenter to start the
 * agent on its host.
 */
const FOR_NSENTER = ['util-linux', 'libselinux1', 'libpcre2-8-0'];
const PACKAGES = [...FOR_NODE, ...FOR_NSENTER];

/**
 * Matches libraries including the loader, nsenter, and the licences. Leaves out converters between character sets, and
 * profilers.
 */
const WANTED = new RegExp(
  [
    String.raw`^(?:usr/)?lib(?:64)?/(?:[^/]+/)?[^/]+\.so(?:\.[\d.]+)?$`,
    '^usr/bin/nsenter$',
    '^usr/share/doc/[^/]+/copyright$',
  ].join('|'),
);

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly arch: string;
  readonly sha256: string;
}

export interface Libraries {
  readonly packages: readonly DebianPackage[];
  /** The files and links below `usr`, sorted by path. */
  readonly entries: readonly TarEntry[];
}

/**
 * Fetches the packages once. Remove the cache to get newer packages. Another list of packages uses another folder in
 * the cache.
 */
export async function fetchLibraries(arch: string): Promise<Libraries> {
  const list = createHash('sha256').update(PACKAGES.join(' ')).digest('hex').slice(0, 8);
  const folder = join(await cacheFolder('libraries'), `${arch}-${list}`);
  if (!existsSync(folder)) await download(arch, folder);
  const files = (await readdir(folder)).filter((name) => name.endsWith('.deb')).toSorted();
  const packages = await Promise.all(files.map(async (name) => await describe(join(folder, name))));
  const unpacked = await mkdtemp(join(folder, 'unpacked-'));
  try {
    for (const name of files) await must('dpkg-deb', ['-x', join(folder, name), unpacked]);
    return { packages, entries: await entriesBelow(unpacked) };
  } finally {
    await rm(unpacked, { recursive: true });
  }
}

/**
 * Downloads the packages with a separate package state. The package state of this machine knows only one architecture,
 * and must not change.
 */
async function download(arch: string, folder: string): Promise<void> {
  const staging = await mkdtemp(`${folder}-`);
  try {
    const state = join(staging, 'apt');
    for (const name of ['lists/partial', 'cache/archives/partial'])
      await mkdir(join(state, name), { recursive: true });
    await writeFile(join(state, 'status'), '');
    const settings = {
      'Dir::State::lists': join(state, 'lists'),
      'Dir::State::status': join(state, 'status'),
      'Dir::Cache': join(state, 'cache'),
      'APT::Architecture': arch,
      'APT::Architectures::': arch,
      'APT::Sandbox::User': 'root',
      'Acquire::Languages': 'none',
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    await must('apt-get', [...options, 'update'], { cwd: staging });
    await must('apt-get', [...options, 'download', ...PACKAGES], { cwd: staging });
    await rm(state, { recursive: true });
    await rename(staging, folder);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw error;
  }
}

async function describe(file: string): Promise<DebianPackage> {
  const fields = await must('dpkg-deb', ['-f', file, 'Package', 'Version', 'Architecture']);
  const of = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(fields)?.[1] ?? '';
  const sha256 = createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
  return { name: of('Package'), version: of('Version'), arch: of('Architecture'), sha256 };
}

/**
 * Returns the wanted files below `usr`. Older releases have files in /lib, newer releases only in /usr/lib. In the
 * result, all of them are in /usr/lib.
 */
async function entriesBelow(unpacked: string): Promise<TarEntry[]> {
  const found = await readdir(unpacked, { recursive: true, withFileTypes: true });
  const entries = await Promise.all(
    found.map(async (entry): Promise<TarEntry | undefined> => {
      const file = join(entry.parentPath, entry.name);
      const path = relative(unpacked, file);
      if (!WANTED.test(path)) return undefined;
      const below = path.startsWith('usr/') ? path : `usr/${path}`;
      if (entry.isSymbolicLink()) return { path: below, mode: 0o777, link: await readlink(file) };
      return entry.isFile()
        ? { path: below, mode: 0o755, content: await readFile(file) }
        : undefined;
    }),
  );
  const known = entries.filter((entry) => entry !== undefined);
  return known.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
