/**
 * Puts an airgap bundle into the directory from which the service imports it: only when it is complete, and only once.
 */
import { dirname, join } from 'node:path';
import { isRecord, parseJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { type Files, syncPath, writeDurably } from '../state/durable-files.ts';
import { type FileTrust, unless } from '../state/trusted-path.ts';
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
  readonly list: string;
  readonly fileTrust: Pick<FileTrust, 'assertTrusted'>;
}

type Placing = BundleRequest & FetchTools;

/** The bundles of this many versions stay: the running version and the next one. */
const KEPT_VERSIONS = 2;

/**
 * Resolves once the bundle is in the images directory, even if somebody else put it there, and older bundles of the
 * agent are removed.
 */
export async function placeBundle(asked: BundleRequest, tools: FetchTools): Promise<void> {
  const place = async (limits: DownloadLimits): Promise<void> =>
    await placeOnce({ ...tools, ...asked, limits });
  const discard = async (): Promise<void> => await discardBundle(asked, tools.files);
  await whenThereIsRoom(place, discard, asked.limits, tools);
}

async function placeOnce(asked: Placing): Promise<void> {
  const placing = { ...asked, sha256: asked.sha256?.toLowerCase() };
  const { imagesDirectory, list, files } = placing;
  await makeDirectory(placing);
  const bundles = await loadBundles(list, files);
  const name = (await findWhole(placing, bundles)) ?? (await fetchBundle(placing, bundles));
  // The process that put the file there may have ended before it was synced to the disk.
  for (const path of [join(imagesDirectory, name), imagesDirectory]) await syncPath(path, files);
  await settle(name, placing);
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
  const ours = bundles.filter((bundle) => bundle.sha256 === sha256).map(({ name }) => name);
  for (const name of new Set([...ours, bundleNameIn(new URL(url)) ?? '']))
    if (name !== '' && (await hashFile(join(imagesDirectory, name), files)) === sha256) return name;
  return undefined;
}

async function fetchBundle(placing: Placing, bundles: readonly PlacedBundle[]): Promise<string> {
  const { url, sha256, version, imagesDirectory, record, list, files } = placing;
  const offered = sha256 === undefined ? await findOffered(placing, bundles) : undefined;
  const known = offered?.validator;
  let found = offered?.name ?? '';
  const inspect: Inspect = async (answer, validator) => {
    const name = bundleNameFor(answer);
    if (known !== undefined && known === validator) return { isHere: true };
    const there = await hashFile(join(imagesDirectory, name), files);
    const isHere = there !== undefined && there === sha256;
    if (isHere) found = name;
    // The hash does not cover the name, so a server could choose the name of any other file here.
    const isOurs =
      name === bundleNameIn(new URL(url)) || bundles.some((each) => each.name === name);
    if (there !== undefined && !isHere && !isOurs)
      throw new Error(
        `${answer.url.host} names the bundle ${name}, and another file here has the same name: rename one of them`,
      );
    return { isHere, name };
  };
  const paths = { part: await partFor(placing), record };
  await using part = await openPartial({ url, sha256 }, paths, files);
  const isWhole =
    part.wanted !== undefined && part.sha256 === part.wanted && isBundleName(part.origin.name);
  const wanted = { ...placing, paths, part, inspect, ...(known && { unless: known }) };
  if (!isWhole && (await fetchVerified(wanted)) === 'here') return found;
  await part.seal(0o644);
  const { name = '', validator } = part.origin;
  const bundle = { name, url, version, sha256: part.sha256, ...(validator && { validator }) };
  // The list is saved first, because a bundle that is not on the list would never be removed.
  await saveBundles(list, withBundle(bundles, bundle), files);
  await files.rename(paths.part, join(imagesDirectory, name));
  return name;
}

/**
 * Returns the bundle that this URL led to before, if it is still in place. Without a hash only the server knows whether
 * it is current.
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

/** Moves a bundle of the agent to the end of the list, and removes those of older versions. */
async function settle(name: string, placing: Placing): Promise<void> {
  const { imagesDirectory, list, version, files } = placing;
  const bundles = await loadBundles(list, files);
  const newest = bundles.find((bundle) => bundle.name === name);
  if (newest === undefined || !(await isPlaced(newest, placing))) return;
  const inOrder = withBundle(bundles, { ...newest, version });
  const newestFirst = inOrder.map((bundle) => bundle.version).toReversed();
  const kept = [...new Set(newestFirst)].slice(0, KEPT_VERSIONS);
  const isKept = (bundle: PlacedBundle): boolean => kept.includes(bundle.version);
  for (const old of inOrder.filter((bundle) => !isKept(bundle))) {
    // A file that was changed after the agent placed it does not belong to the agent any more, and stays.
    if (await isPlaced(old, placing))
      await files.rm(join(imagesDirectory, old.name), { force: true });
  }
  // The list is saved last: after power loss a removed file may be back, and then the list must still name it.
  await syncPath(imagesDirectory, files);
  await saveBundles(list, inOrder.filter(isKept), files);
}

async function isPlaced(
  { name, sha256 }: PlacedBundle,
  { imagesDirectory, files }: Placing,
): Promise<boolean> {
  return (await hashFile(join(imagesDirectory, name), files)) === sha256;
}

/**
 * Creates the images directory. Somebody who may change the data directory, or put a link there, could choose where
 * root writes, so that is refused.
 */
async function makeDirectory({ imagesDirectory: path, fileTrust, files }: Placing): Promise<void> {
  await fileTrust.assertTrusted(dirname(path)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    throw new Error(`there is no data directory ${dirname(path)}`, { cause: error });
  });
  await unless('EEXIST', files.mkdir(path, 0o755));
  await fileTrust.assertTrusted(path);
  // The process that created the directory may have ended before its name was synced to the disk.
  await syncPath(dirname(path), files);
}

/**
 * Returns the path of the partial file. It is outside of the images directory if both are on one file system, because
 * the service imports every file in it.
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

export interface PlacedBundle {
  readonly name: string;
  readonly url: string;
  readonly version: string;
  /** The hash of the bytes at the time when the agent placed the bundle. */
  readonly sha256: string;
  /** The ETag or the date that the server sent. */
  readonly validator?: string;
}

/**
 * Returns the bundles in order, the oldest first. A list that cannot be parsed counts as empty, and its bundles are
 * then never removed. Rejects if the list cannot be read.
 */
export async function loadBundles(path: string, files: Files): Promise<readonly PlacedBundle[]> {
  const value = parseJson(await unless('ENOENT', files.readFile(path, 'utf8')));
  return isRecord(value) && Array.isArray(value['bundles'])
    ? value['bundles'].filter(isBundle)
    : [];
}

/** Saves the list of bundles. */
export async function saveBundles(
  path: string,
  bundles: readonly PlacedBundle[],
  files: Files,
): Promise<void> {
  await writeDurably(path, `${JSON.stringify({ bundles })}\n`, files);
}

/** Returns the list with the bundle at its end. A bundle with the same name is replaced. */
export function withBundle(
  bundles: readonly PlacedBundle[],
  bundle: PlacedBundle,
): readonly PlacedBundle[] {
  return [...bundles.filter(({ name }) => name !== bundle.name), bundle];
}

function isBundle(value: unknown): value is PlacedBundle {
  const isWhole =
    isRecord(value) &&
    ['url', 'version', 'sha256'].every((key) => typeof ownMember(value, key) === 'string');
  return isWhole && isBundleName(value['name']);
}
