/** Owns getting an airgap bundle into the directory that the service imports from: whole or not at all, and once. */
import { dirname, join } from 'node:path';
import type { PlacedBundle } from './bundle-list.ts';
import { loadBundles, saveBundles, withBundle } from './bundle-list.ts';
import { bundleNameFor } from './bundle-name.ts';
import type { Files } from './durable-files.ts';
import { syncPath } from './durable-files.ts';
import type { FetchRequest, FetchTools, Inspect } from './fetch.ts';
import { fetchVerified } from './fetch.ts';
import { hashFile } from './hash-file.ts';
import { PartialFile } from './partial-file.ts';

export interface BundleRequest extends Omit<FetchRequest, 'paths'> {
  readonly version: string;
  /** The service imports every file in it as soon as it sees one; its parent must exist. */
  readonly imagesDirectory: string;
  /** JSON file with the note of a download that is not whole yet. */
  readonly record: string;
  /** JSON file with the list of the bundles that were placed. */
  readonly list: string;
}

type BundlePlace = Pick<BundleRequest, 'imagesDirectory' | 'record'>;

/** The one that belongs to the running version, and the one for the next. */
const KEPT = 2;
const READABLE = 0o644;

/**
 * Resolves when the bundle lies in the images directory, by whose hand ever, and older ones of ours are removed; rejects
 * with the reason for people, or with the signal's.
 */
export async function placeBundle(request: BundleRequest, tools: FetchTools): Promise<void> {
  const { imagesDirectory, list } = request;
  const { files } = tools;
  const sha256 = request.sha256?.toLowerCase();
  await makeDirectory(imagesDirectory, files);
  const known = (await loadBundles(list, files)).filter((bundle) => bundle.sha256 === sha256);
  for (const bundle of known) {
    if (await isPlaced(bundle, imagesDirectory, files)) return await settle(bundle, request, files);
  }
  const placed = await fetchBundle({ ...request, sha256 }, tools);
  if (placed !== undefined) await settle(placed, request, files);
}

/** Removes what a bundle that was not placed leaves; what is not there is fine. */
export async function discardBundle({ imagesDirectory, record }: BundlePlace, files: Files): Promise<void> {
  for (const path of [...partsFor(imagesDirectory), record]) await files.rm(path, { force: true });
}

/** Undefined where somebody else's file with the wanted bytes is there already. */
async function fetchBundle(request: BundleRequest, tools: FetchTools): Promise<PlacedBundle | undefined> {
  const { url, sha256, version, imagesDirectory, record, list } = request;
  const { files } = tools;
  const paths = { part: await partFor(imagesDirectory, files), record };
  await using part = await PartialFile.open({ url, sha256 }, paths, files);
  const bundles = await loadBundles(list, files);
  let here: PlacedBundle | undefined;
  const inspect: Inspect = async (answer, validator) => {
    const name = bundleNameFor(answer);
    const ours = bundles.find((bundle) => bundle.name === name);
    const isSame = validator !== undefined && ours?.url === url && ours.validator === validator;
    const wanted = sha256 ?? (isSame ? ours.sha256 : undefined);
    const isHere = wanted !== undefined && (await hashFile(join(imagesDirectory, name), files)) === wanted;
    here = ours?.sha256 === wanted ? ours : undefined;
    return { isHere, name };
  };
  const isWhole = part.wanted !== undefined && part.sha256 === part.wanted && part.origin.name !== undefined;
  if (!isWhole && (await fetchVerified(part, { ...request, paths }, inspect, tools)) === 'here') return here;
  await part.seal(READABLE);
  const { name = '', validator } = part.origin;
  const bundle = { name, url, version, sha256: part.sha256, ...(validator && { validator }) };
  // The list first: a bundle that is not on it would stay for ever.
  await saveBundles(list, withBundle(bundles, bundle), files);
  await files.rename(paths.part, join(imagesDirectory, name));
  await syncPath(imagesDirectory, files);
  return bundle;
}

/** Makes the bundle the newest of ours, and removes those that are older than the one before it. */
async function settle(newest: PlacedBundle, request: BundleRequest, files: Files): Promise<void> {
  const { imagesDirectory, list, version } = request;
  const bundles = withBundle(await loadBundles(list, files), { ...newest, version });
  for (const old of bundles.slice(0, -KEPT)) {
    // What has other bytes than were placed is somebody else's by now.
    if (await isPlaced(old, imagesDirectory, files)) await files.rm(join(imagesDirectory, old.name), { force: true });
  }
  await saveBundles(list, bundles.slice(-KEPT), files);
}

async function isPlaced({ name, sha256 }: PlacedBundle, imagesDirectory: string, files: Files): Promise<boolean> {
  return (await hashFile(join(imagesDirectory, name), files)) === sha256;
}

async function makeDirectory(path: string, files: Files): Promise<void> {
  try {
    await files.mkdir(path, 0o755);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new Error(`there is no data directory ${dirname(path)}`, { cause: error });
    if (code !== 'EEXIST') throw error;
  }
}

/**
 * The service takes every file in the images directory for a bundle, whatever its name: bytes that are not whole stay
 * outside of it, unless a rename could then not bring them in.
 */
async function partFor(imagesDirectory: string, files: Files): Promise<string> {
  const [outside, inside] = partsFor(imagesDirectory);
  const [parent, images] = await Promise.all([files.stat(dirname(imagesDirectory)), files.stat(imagesDirectory)]);
  return parent.dev === images.dev ? outside : inside;
}

function partsFor(imagesDirectory: string): [outside: string, inside: string] {
  const name = '.refit-airgap.part';
  return [join(dirname(imagesDirectory), name), join(imagesDirectory, name)];
}
