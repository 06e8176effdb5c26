/**
 * Writes another version into the text of a manifest: the version, the addresses and paths of the binaries that name it, and
 * the SHA-256 of each. Everything else stays as its author wrote it.
 */
import {
  checkFile,
  digestOfFile,
  textAt,
  type WebTools,
} from '../../../cli/upgrade/published-file.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { printableUrl } from '../../../util/printable-url.ts';
import { withOtherVersion } from '../../../util/renamed-version.ts';
import { type ScalarPlace, scalarPlaces } from '../../../util/yaml/scalar-places.ts';

export interface Renewed {
  readonly text: string;
  /** Sentences that say where each SHA-256 comes from. */
  readonly said: readonly string[];
}

const SHA256 = /[0-9a-fA-F]{64}/;
/** The whole text of a file with one digest, with or without the name of the file, as `sha256sum` writes it. */
const DIGEST_FILE = /^([0-9a-fA-F]{64})(?:[ \t]+\*?(\S+))?\s*$/;
const ARCH = '{arch}';

interface Place extends ScalarPlace {
  readonly field: string;
  readonly source: string;
}

/** Rejects with REFIT_CONTROL and all places that name no version, or whose SHA-256 nobody can know. */
export async function renewManifest(
  text: string,
  from: string,
  to: string,
  tools: WebTools,
): Promise<Renewed> {
  const places = scalarPlaces(text).map(
    (each): Place => ({
      ...each,
      field: each.path.join('.'),
      source: text.slice(each.start, each.end),
    }),
  );
  const problems = places.flatMap((each) => [
    ...problemOfFile(each, from, to),
    ...problemOfHash(each, places),
  ]);
  if (
    !places.some(({ path, source }) => isVersion(path) && renamed(source, from, to) !== undefined)
  )
    problems.push('the version is not written as plain text in the first document of the file');
  if (problems.length > 0)
    throw new RefitError('REFIT_CONTROL', `the manifest cannot get ${to} by itself`, {
      problems,
      hint: 'change these fields by hand',
    });
  const said: string[] = [];
  const edits: { readonly place: Place; readonly source: string }[] = [];
  for (const place of places) {
    const source = renamed(place.source, from, to);
    if ((isVersion(place.path) || isFile(place.path)) && source !== undefined)
      edits.push({ place, source });
    const file = fileOfHash(place, places);
    if (file === undefined) continue;
    const url = renamed(file.url, from, to) ?? file.url;
    const digest = await digestOf(url, file.arch, tools);
    said.push(`${place.field}: ${digest.sha256}, from ${digest.source}.`);
    edits.push({ place, source: place.source.replace(SHA256, digest.sha256) });
  }
  return { text: withEdits(text, edits), said };
}

function withEdits(
  text: string,
  edits: readonly { readonly place: Place; readonly source: string }[],
): string {
  return edits
    .toSorted((one, other) => other.place.start - one.place.start)
    .reduce(
      (whole, { place: { start, end }, source }) =>
        `${whole.slice(0, start)}${source}${whole.slice(end)}`,
      text,
    );
}

const renamed = withOtherVersion;

/** Refit's manifest and that of KubeOne have the version in different fields. */
function isVersion(path: readonly string[]): boolean {
  return ['version', 'versions.kubernetes'].includes(path.join('.'));
}

/** Returns true for an address or a path of a binary of Kubernetes, for all hosts or for one. */
function isFile(path: readonly string[]): boolean {
  return isOfBinaries(path) && ['url', 'path'].includes(path.at(-1) ?? '');
}

function isOfBinaries([first, , third]: readonly string[]): boolean {
  return first === 'binaries' || (first === 'hosts' && third === 'binaries');
}

function problemOfFile({ path, field, source }: Place, from: string, to: string): string[] {
  if (!isFile(path) || renamed(source, from, to) !== undefined) return [];
  const shown = path.at(-1) === 'url' ? printableUrl(bareText(source)) : source;
  return [`${field} does not name ${from}, so the file of the new version is unknown: ${shown}`];
}

function isHash({ path, source }: Place): boolean {
  return isOfBinaries(path) && path.includes('sha256') && SHA256.test(source);
}

interface HashedFile {
  readonly url: string;
  /** The architecture of the file; undefined if the hash does not say it. */
  readonly arch: string | undefined;
}

/** Returns the file that the hash is about; undefined if the place is no hash, or if there is no address. */
function fileOfHash(place: Place, places: readonly Place[]): HashedFile | undefined {
  if (!isHash(place)) return undefined;
  const at = place.path.indexOf('sha256');
  const binary = place.path.slice(0, at).join('.');
  const address = places.find(({ field }) => field === `${binary}.url`)?.source;
  if (address === undefined) return undefined;
  const arch = place.path[at + 1];
  const url = bareText(address);
  return { url: arch === undefined ? url : url.replaceAll(ARCH, arch), arch };
}

function bareText(source: string): string {
  return source.replace(/^["']/, '').replace(/["']$/, '');
}

function problemOfHash(place: Place, places: readonly Place[]): string[] {
  if (!isHash(place)) return [];
  const file = fileOfHash(place, places);
  if (file === undefined)
    return [`${place.field} is the SHA-256 of a file on the hosts, which only the hosts know`];
  if (!URL.canParse(file.url)) return [`${place.field} belongs to no plain address: ${file.url}`];
  if (file.url.includes(ARCH))
    return [
      `${place.field} is one SHA-256 for all processors; write one for each, such as {amd64: …}`,
    ];
  const same = places.filter((other) => fileOfHash(other, places)?.url === file.url);
  if (same.length > 1 && new Set(same.map((each) => fileOfHash(each, places)?.arch)).size > 1)
    return [`${place.field}: the address has no {arch}, so it is one file for several processors`];
  return [];
}

interface Digest {
  readonly sha256: string;
  readonly source: string;
}

/** Releases of Kubernetes have a file with the digest beside each binary. Without it, the binary itself is read. */
async function digestOf(url: string, arch: string | undefined, tools: WebTools): Promise<Digest> {
  try {
    await checkFile(url, arch, tools);
    const beside = new URL(url);
    beside.pathname = `${beside.pathname}.sha256`;
    const published = await textAt(beside.href, tools);
    if (published === undefined)
      return { sha256: await digestOfFile(url, arch, tools), source: 'the file itself' };
    const [, sha256, name] = DIGEST_FILE.exec(published.trim()) ?? [];
    const own = decodeURIComponent(new URL(url).pathname.split('/').at(-1) ?? '');
    if (sha256 === undefined || (name !== undefined && name.split('/').at(-1) !== own))
      throw new Error(`${printableUrl(beside.href)} is not the SHA-256 of ${own}`);
    return { sha256: sha256.toLowerCase(), source: printableUrl(beside.href) };
  } catch (error) {
    tools.abort.throwIfAborted();
    throw new RefitError(
      'REFIT_CONTROL',
      `${printableUrl(url)} cannot be had: ${messageOf(error)}`,
      { hint: 'check that the version is published there', cause: error },
    );
  }
}
