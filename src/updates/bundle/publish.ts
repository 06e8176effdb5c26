/** Makes the directory of an update server: gathers files, verifies each, and only then replaces the catalog. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { create, extract } from 'tar';
import { messageOf, RefitError } from '../../util/errors.ts';
import { CATALOG_FILE, type Catalog, pathOfFile, readCatalog } from '../server/catalog.ts';
import { readBundleFile, type WantedFile } from './bundle-file.ts';

/** Downloads to `path`, resumed if a part is there, and verified. Rejects with one sentence. */
export type FileDownload = (url: string, sha256: string, path: string) => Promise<void>;

/** `say` gets one line for each file. */
export async function publishBundle(
  file: string,
  directory: string,
  download: FileDownload,
  say: (line: string) => void,
): Promise<void> {
  const wanted = await readBundleFile(file);
  await mkdir(join(directory, 'files'), { recursive: true });
  const releases: Catalog['releases'] = Object.fromEntries(wanted.versions.map((version) => [version, []]));
  for (const each of wanted.files) {
    const { version, platform, kind } = each;
    const found = await gather(each, file, directory, download);
    releases[version]?.push({ platform, kind, ...found });
    say(`${version} ${platform} ${kind}: ${found.size} bytes, sha256 ${found.sha256}`);
  }
  await publish(directory, { releases, channels: wanted.channels });
}

/** One file with the catalog and all that it names, to carry into an air gap. */
export async function packBundle(directory: string, archive: string): Promise<void> {
  const hashes = hashesOf(await readCatalog(directory));
  for (const hash of hashes) await verify(pathOfFile(directory, hash), hash);
  const next = `${archive}.new`;
  await create({ file: next, cwd: directory, portable: true }, [
    CATALOG_FILE,
    ...hashes.map((hash) => `files/${hash}`),
  ]);
  await settle(next, archive);
}

/** Publishes what the archive has, once every file of it is verified. Other members are ignored. */
export async function unpackBundle(archive: string, directory: string): Promise<void> {
  const incoming = join(directory, 'incoming');
  await rm(incoming, { recursive: true, force: true });
  await mkdir(join(incoming, 'files'), { recursive: true });
  const isOurs = (path: string): boolean => path === CATALOG_FILE || /^files\/[0-9a-f]{64}$/.test(path);
  try {
    await extract({
      file: archive,
      cwd: incoming,
      preserveOwner: false,
      filter: (path, entry) => isOurs(path) && 'type' in entry && entry.type === 'File',
    });
    const catalog = await readCatalog(incoming);
    await mkdir(join(directory, 'files'), { recursive: true });
    for (const hash of hashesOf(catalog)) {
      await verify(pathOfFile(incoming, hash), hash);
      await settle(pathOfFile(incoming, hash), pathOfFile(directory, hash));
    }
    await publish(directory, catalog);
  } catch (error) {
    throw error instanceof RefitError ? error : problem(`cannot use ${archive}: ${messageOf(error)}`, error);
  } finally {
    await rm(incoming, { recursive: true, force: true });
  }
}

function hashesOf({ releases }: Pick<Catalog, 'releases'>): string[] {
  return [...new Set(Object.values(releases).flatMap((files) => files.map(({ sha256 }) => sha256)))];
}

/** Resolves once the file lies under its hash. */
async function gather(
  { version, platform, source, sha256 }: WantedFile,
  file: string,
  directory: string,
  download: FileDownload,
): Promise<{ readonly sha256: string; readonly size: number }> {
  try {
    let found = sha256;
    if (found === undefined || !(await isWhole(pathOfFile(directory, found), found))) {
      const part = join(directory, 'files', `${sha256 ?? 'copied'}.part`);
      if (/^https?:/i.test(source)) await download(source, sha256 ?? '', part);
      else await copyFile(resolve(dirname(file), source), part);
      found = await hashOf(part);
      if (sha256 !== undefined && found !== sha256) throw new Error(`its sha256 is ${found}, wanted ${sha256}`);
      await settle(part, pathOfFile(directory, found));
    }
    return { sha256: found, size: (await stat(pathOfFile(directory, found))).size };
  } catch (error) {
    throw problem(`release ${version}: cannot get the file for ${platform}: ${messageOf(error)}`, error);
  }
}

async function isWhole(path: string, sha256: string): Promise<boolean> {
  return (await hashOf(path).catch(() => undefined)) === sha256;
}

async function verify(path: string, sha256: string): Promise<void> {
  if (!(await isWhole(path, sha256))) throw problem(`${path} is missing or damaged; nothing was published`);
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest('hex');
}

async function publish(directory: string, catalog: Catalog): Promise<void> {
  const next = join(directory, `${CATALOG_FILE}.new`);
  await using handle = await open(next, 'w');
  await handle.writeFile(`${JSON.stringify(catalog, undefined, 2)}\n`);
  await settle(next, join(directory, CATALOG_FILE));
}

/** In place as a whole, also after power loss, and readable for the account that serves it. */
async function settle(path: string, target: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.chmod(0o644);
  await file.sync();
  await rename(path, target);
  await using directory = await open(dirname(target), 'r');
  await directory.sync();
}

function problem(message: string, cause?: unknown): RefitError {
  return new RefitError('REFIT_FILE', message, { cause, hint: 'correct that and run the command again' });
}
