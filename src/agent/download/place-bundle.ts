/**
 * Puts an airgap bundle into the directory from which the service imports bundles. The bundle gets there only when it
 * is complete, and the service imports it only once.
 */
import { dirname, join } from 'node:path';
import { type Files, syncPath } from '../state/durable-files.ts';
import { type FileTrust, unless } from '../state/trusted-path.ts';
import type { PlacedBundle } from './bundle-list.ts';
import { bundleNameFor, bundleNameIn, isBundleName, PARTIAL_BUNDLE } from './bundle-name.ts';
import { whenThereIsRoom } from './disk-room.ts';
import {
  type DownloadLimits,
  type FetchRequest,
  type FetchTools,
  fetchVerified,
  type Inspect,
} from './fetch.ts';
import { hashFile } from './hash-file.ts';
import { type KeptBundles, keptBundles } from './kept-bundles.ts';
import { openPartial } from './partial-file.ts';

export interface BundleRequest extends Omit<FetchRequest, 'paths'> {
  readonly version: string;
  /**
   * The service imports every file in this directory as soon as it appears. The parent directory must exist, and nobody
   * else may be able to write to it.
   */
  readonly imagesDirectory: string;
  /** The path of the JSON file with the record of an incomplete download. */
  readonly record: string;
  /** The path of the record of bundles that the agent placed. */
  readonly list: string;
  /** The object that keeps the record of the bundles. Agents that share the list must also share this object. */
  readonly keptBundles?: KeptBundles;
  /**
   * The bundles of the previous version stay for this many milliseconds after the upgrade. If it is absent, they stay
   * until the next bundle.
   */
  readonly keepMs?: number | undefined;
  /** Removes files that the host does not need. Resolves with true if that freed disk space. */
  readonly makeRoom?: () => Promise<boolean>;
  readonly fileTrust: Pick<FileTrust, 'assertTrusted'>;
}

type Placing = BundleRequest & FetchTools & { readonly kept: KeptBundles };

/**
 * Resolves once the bundle is in the images directory and the older bundles of the agent are removed. It does not
 * matter whether the agent or somebody else put the bundle there.
 */
export async function placeBundle(asked: BundleRequest, tools: FetchTools): Promise<void> {
  const { list, imagesDirectory } = asked;
  const kept =
    asked.keptBundles ?? keptBundles({ ...tools, list, imagesDirectory: () => imagesDirectory });
  const place = async (limits: DownloadLimits): Promise<void> =>
    await placeOnce({ ...tools, ...asked, kept, limits });
  const discard = async (): Promise<void> => await discardBundle(asked, tools.files);
  await whenThereIsRoom(place, discard, asked.limits, tools, asked.makeRoom);
}

async function placeOnce(asked: Placing): Promise<void> {
  const placing = { ...asked, sha256: asked.sha256?.toLowerCase() };
  const { imagesDirectory, version, keepMs, kept, files } = placing;
  await makeDirectory(placing);
  const bundles = await kept.placed();
  const name = (await findWhole(placing, bundles)) ?? (await fetchBundle(placing, bundles));
  // The process that put the file there may have ended before the file was synced to the disk.
  for (const path of [join(imagesDirectory, name), imagesDirectory]) await syncPath(path, files);
  await kept.arrange(name, version, keepMs);
}

/** Removes the incomplete download of a bundle and its record. */
export async function discardBundle(
  at: Pick<BundleRequest, 'imagesDirectory' | 'record'>,
  files: Files,
) {
  for (const path of [...partsFor(at.imagesDirectory), at.record])
    await files.rm(path, { force: true });
}

/** Returns the name of a file with the wanted bytes: a bundle of the agent, or a file with the name from the URL. */
async function findWhole(
  placing: Placing,
  bundles: readonly PlacedBundle[],
): Promise<string | undefined> {
  const { url, sha256, imagesDirectory, files } = placing;
  if (sha256 === undefined) return undefined;
  // Backed by bundle-found. The file itself is hashed.
  const ours = bundles.filter((bundle) => bundle.sha256 === sha256).map(({ name }) => name);
  // Guard bundle-found. A bundle that is there already needs the wanted hash.
  for (const name of new Set([...ours, bundleNameIn(new URL(url)) ?? '']))
    if (name !== '' && (await hashFile(join(imagesDirectory, name), files)) === sha256) return name;
  return undefined;
}

async function fetchBundle(placing: Placing, bundles: readonly PlacedBundle[]): Promise<string> {
  const { url, sha256, version, imagesDirectory, record, kept, files } = placing;
  const offered = sha256 === undefined ? await findOffered(placing, bundles) : undefined;
  const known = offered?.validator;
  let found = offered?.name ?? '';
  const inspect: Inspect = async (answer, validator) => {
    const name = bundleNameFor(answer);
    if (known !== undefined && known === validator) return { isHere: true };
    const there = await hashFile(join(imagesDirectory, name), files);
    // Guard bundle-here. A file with the name from the server needs the wanted hash.
    const isHere = there !== undefined && there === sha256;
    if (isHere) found = name;
    // The hash does not protect the name of the bundle, so a server could choose the name of a file that does not
    // belong to the agent.
    const isOurs =
      name === bundleNameIn(new URL(url)) || bundles.some((each) => each.name === name);
    // Guard bundle-foreign. A server cannot choose a file of somebody else.
    if (there !== undefined && !isHere && !isOurs)
      throw new Error(
        `the file name of the bundle on ${answer.url.host} is ${name}, but another file on this host has the same name: rename one of them`,
      );
    return { isHere, name };
  };
  const paths = { part: await partFor(placing), record };
  await using part = await openPartial({ url, sha256 }, paths, files);
  // Guard bundle-whole. A part of an earlier process is complete only with the wanted hash.
  const isWhole =
    part.wanted !== undefined && part.sha256 === part.wanted && isBundleName(part.origin.name);
  const wanted = { ...placing, paths, part, inspect, ...(known && { unless: known }) };
  if (!isWhole && (await fetchVerified(wanted)) === 'here') return found;
  await part.seal(0o644);
  const { name = '', validator } = part.origin;
  const bundle = { name, url, version, sha256: part.sha256, ...(validator && { validator }) };
  // The list is saved first, because a bundle that is not on the list would never be removed.
  await kept.add(bundle, placing.keepMs);
  await files.rename(paths.part, join(imagesDirectory, name));
  return name;
}

/**
 * Returns the bundle that an earlier download from this URL placed, if its file is unchanged. Without a hash only the
 * server knows whether that bundle is current.
 */
async function findOffered(
  placing: Placing,
  bundles: readonly PlacedBundle[],
): Promise<PlacedBundle | undefined> {
  const offered = bundles.findLast(
    ({ url, validator }) => url === placing.url && validator !== undefined,
  );
  return offered !== undefined && (await isPlaced(offered, placing)) ? offered : undefined;
}

async function isPlaced(
  { name, sha256 }: PlacedBundle,
  { imagesDirectory, files }: Placing,
): Promise<boolean> {
  // Guard bundle-offered. The server cannot confirm a file that was changed here.
  return (await hashFile(join(imagesDirectory, name), files)) === sha256;
}

/**
 * Creates the images directory. Refuses a data directory that users other than root can change: they could replace it
 * by a link and so choose where root writes.
 */
async function makeDirectory({ imagesDirectory: path, fileTrust, files }: Placing): Promise<void> {
  // Backed by bundle-folder. It says better what is wrong.
  await fileTrust.assertTrusted(dirname(path)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(`there is no data directory ${dirname(path)}`, { cause: error });
  });
  await unless('EEXIST', files.mkdir(path, 0o755));
  // Guard bundle-folder. Nobody else can put or change files there.
  await fileTrust.assertTrusted(path);
  // The process that created the directory may have ended before the name of the directory was synced to the disk.
  await syncPath(dirname(path), files);
}

/**
 * Returns the path of the partial file. The path is outside of the images directory, because the service imports every
 * file in it. If the parent directory is on another file system, the path has to be inside.
 */
async function partFor({ imagesDirectory, files }: Placing): Promise<string> {
  const [outside, inside] = partsFor(imagesDirectory);
  const [parent, images] = await Promise.all([
    files.stat(dirname(imagesDirectory)),
    files.stat(imagesDirectory),
  ]);
  return parent.dev === images.dev ? outside : inside;
}

function partsFor(imagesDirectory: string): [outside: string, inside: string] {
  return [join(dirname(imagesDirectory), PARTIAL_BUNDLE), join(imagesDirectory, PARTIAL_BUNDLE)];
}
