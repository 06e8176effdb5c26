/**
 * Creates the directory of an update server. Gathers files and verifies each file, and replaces the catalog only after
 * that.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { create, extract } from 'tar';
import { z } from 'zod';
import { readBounded } from '../../util/bounded-file.ts';
import { listIssues } from '../../util/describe-issue.ts';
import { failing, messageOf, RefitError } from '../../util/errors.ts';
import { ownMember } from '../../util/own-member.ts';
import { repeated } from '../../util/repeated.ts';
import { parseYamlDocument } from '../../util/yaml.ts';
import * as catalogs from '../server/catalog.ts';

/** Downloads a file to `path` and verifies it. Continues a partial download. Rejects with one sentence. */
export type FileDownload = (url: string, sha256: string, path: string) => Promise<void>;

export interface Publishing {
  readonly file: string;
  readonly directory: string;
  readonly download: FileDownload;
  readonly say: (line: string) => void;
}

export async function publishBundle(publishing: Publishing): Promise<void> {
  const { file, directory, say } = publishing;
  const wanted = await readBundleFile(file);
  await mkdir(join(directory, 'files'), { recursive: true });
  const releases: catalogs.Catalog['releases'] = Object.fromEntries(
    wanted.versions.map((version) => [version, []]),
  );
  for (const each of wanted.files) {
    const { version, platform, kind } = each;
    const found = await gather(each, publishing);
    ownMember(releases, version)?.push({ platform, kind, ...found });
    say(`${titleOf(each)}: ${found.size} bytes, sha256 ${found.sha256}`);
  }
  await publish(directory, { releases, channels: wanted.channels });
}

const titleOf = ({ version, platform, kind }: WantedFile): string =>
  `${version} ${platform} ${kind}`;

/**
 * Packs the catalog and all files that it names into one archive, so that people can carry it into an air-gapped
 * network.
 */
export async function packBundle(directory: string, archive: string): Promise<void> {
  const hashes = hashesOf(await catalogs.readCatalog(directory));
  for (const hash of hashes) await verify(catalogs.pathOfFile(directory, hash), hash);
  const next = `${archive}.new`;
  const members = [catalogs.CATALOG_FILE, ...hashes.map((hash) => `files/${hash}`)];
  await create({ file: next, cwd: directory, portable: true }, members);
  await settle(next, archive);
}

/** Publishes the content of the archive once every file is verified. Other files in the archive are ignored. */
export async function unpackBundle(archive: string, directory: string): Promise<void> {
  const incoming = join(directory, 'incoming');
  await rm(incoming, { recursive: true, force: true });
  await mkdir(join(incoming, 'files'), { recursive: true });
  const isOurs = (path: string): boolean =>
    path === catalogs.CATALOG_FILE || /^files\/[0-9a-f]{64}$/.test(path);
  try {
    await extract({
      file: archive,
      cwd: incoming,
      preserveOwner: false,
      filter: (path, entry) => isOurs(path) && 'type' in entry && entry.type === 'File',
    });
    const catalog = await catalogs.readCatalog(incoming);
    await mkdir(join(directory, 'files'), { recursive: true });
    for (const hash of hashesOf(catalog)) {
      await verify(catalogs.pathOfFile(incoming, hash), hash);
      await settle(catalogs.pathOfFile(incoming, hash), catalogs.pathOfFile(directory, hash));
    }
    await publish(directory, catalog);
  } finally {
    await rm(incoming, { recursive: true, force: true });
  }
}

function hashesOf({ releases }: Pick<catalogs.Catalog, 'releases'>): string[] {
  return [
    ...new Set(Object.values(releases).flatMap((files) => files.map(({ sha256 }) => sha256))),
  ];
}

async function gather(wanted: WantedFile, { file, directory, download }: Publishing) {
  const { version, platform, source, sha256 } = wanted;
  try {
    let found = sha256;
    if (found === undefined || !(await isWhole(catalogs.pathOfFile(directory, found), found))) {
      const part = join(directory, 'files', `${sha256 ?? 'copied'}.part`);
      if (/^https?:/i.test(source)) await download(source, sha256 ?? '', part);
      else await copyFile(resolve(dirname(file), source), part);
      found = await hashOf(part);
      if (sha256 !== undefined && found !== sha256)
        throw new Error(`its sha256 is ${found}, wanted ${sha256}`);
      await settle(part, catalogs.pathOfFile(directory, found));
    }
    return { sha256: found, size: (await stat(catalogs.pathOfFile(directory, found))).size };
  } catch (error) {
    throw problem(
      `release ${version}: cannot get the file for ${platform}: ${messageOf(error)}`,
      error,
    );
  }
}

async function isWhole(path: string, sha256: string): Promise<boolean> {
  return (await hashOf(path).catch(() => undefined)) === sha256;
}

async function verify(path: string, sha256: string): Promise<void> {
  if (!(await isWhole(path, sha256)))
    throw problem(`${path} is missing or damaged; nothing was published`);
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest('hex');
}

async function publish(directory: string, catalog: catalogs.Catalog): Promise<void> {
  const next = join(directory, `${catalogs.CATALOG_FILE}.new`);
  await writeFile(next, `${JSON.stringify(catalog, undefined, 2)}\n`);
  await settle(next, join(directory, catalogs.CATALOG_FILE));
}

/** Moves a file to its final place. The file survives power loss, and the account of the server can read it. */
async function settle(path: string, target: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.chmod(0o644);
  await file.sync();
  await rename(path, target);
  await using directory = await open(dirname(target), 'r');
  await directory.sync();
}

export function problem(message: string, cause?: unknown): RefitError {
  return new RefitError('REFIT_FILE', message, {
    cause,
    hint: 'correct that and run the command again',
  });
}

const sha256 = z.string().regex(/^[0-9a-fA-F]{64}$/, 'is not a SHA-256: use 64 hexadecimal digits');

const sourceSchema = z.strictObject({
  platform: z
    .string()
    .regex(/^[a-z0-9]+-[a-z0-9]+$/, 'is not a platform: use for example linux-amd64'),
  k0s: z.string().optional(),
  k0sSha256: sha256.optional(),
  airgapBundle: z.string().optional(),
  airgapSha256: sha256.optional(),
});

const bundleSchema = z.strictObject({
  releases: z.array(
    z.strictObject({ version: catalogs.versionSchema, files: z.array(sourceSchema) }),
  ),
  channels: catalogs.channelsSchema,
});

export interface WantedFile extends Pick<catalogs.CatalogFile, 'platform' | 'kind'> {
  readonly version: string;
  /** A URL, or a path relative to the bundle file. */
  readonly source: string;
  readonly sha256: string | undefined;
}

/** Reads the bundle file. Rejects with REFIT_FILE; the message names the field, what was found, and what would be right. */
export async function readBundleFile(path: string) {
  const fail = failing('REFIT_FILE', `${path}: `, {
    hint: 'correct what each line names, then run the same command again',
  });
  const text = await readBounded(path).catch((error: unknown) =>
    fail(`cannot be read: ${messageOf(error)}`),
  );
  const document = parseYamlDocument(text, fail);
  const { data, error } = bundleSchema.safeParse(document, { reportInput: true });
  if (!data) return fail(listIssues(error, 'the file'));
  const versions = data.releases.map(({ version }) => version);
  const files = data.releases.flatMap(({ version, files: listed }) =>
    listed.flatMap(({ platform, k0s, k0sSha256, airgapBundle, airgapSha256 }): WantedFile[] => [
      ...(k0s
        ? [
            {
              version,
              platform,
              kind: 'k0s' as const,
              source: k0s,
              sha256: k0sSha256?.toLowerCase(),
            },
          ]
        : []),
      ...(airgapBundle
        ? [
            {
              version,
              platform,
              kind: 'airgap' as const,
              source: airgapBundle,
              sha256: airgapSha256?.toLowerCase(),
            },
          ]
        : []),
    ]),
  );
  const problems = [
    ...repeatedIn(versions, files),
    ...unprovenIn(files),
    ...channelProblems(data.channels, versions),
  ];
  if (problems.length > 0) return fail(problems);
  return { versions, files, channels: data.channels };
}

/**
 * Returns a sentence for each version or file that is listed twice, because a cluster could get either of the two
 * entries.
 */
function repeatedIn(versions: readonly string[], files: readonly WantedFile[]): string[] {
  // All files of a repeated release are repeated, too, so the message names only the release.
  const releases = repeated(versions);
  const others = files.filter(({ version }) => !releases.includes(version)).map(titleOf);
  return [...releases, ...repeated(others)].map(
    (twice) => `releases: ${twice} is listed twice; keep one`,
  );
}

function unprovenIn(files: readonly WantedFile[]): string[] {
  return files
    .filter(({ source, sha256: known }) => /^https?:/i.test(source) && known === undefined)
    .map(
      (each) =>
        `release ${titleOf(each)}: comes from a URL without a SHA-256; add ${each.kind}Sha256`,
    );
}

function channelProblems(
  channels: z.infer<typeof bundleSchema>['channels'],
  versions: readonly string[],
): string[] {
  return Object.entries(channels).flatMap(([channel, entries]) => {
    const unknown = entries.filter(({ version }) => !versions.includes(version));
    // Without an index for all clusters, no cluster would learn which releases were withdrawn.
    const isForAll = entries.some(
      ({ percent = 100, hold, withdrawn }) => percent === 100 && !hold && withdrawn === undefined,
    );
    const nobody =
      'no release is for every cluster; at least one release must have no percent, no hold and no withdrawn';
    return [
      ...unknown.map(({ version }) => `${version} is not among the releases; add it there`),
      ...(isForAll ? [] : [nobody]),
    ].map((problem) => `channels.${channel}: ${problem}`);
  });
}
