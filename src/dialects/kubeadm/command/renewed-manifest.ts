/**
 * Writes another version into the text of a manifest: the version, the addresses and paths of the binaries that name it, and
 * the SHA-256 of each. Everything else stays as its author wrote it.
 */
import { createHash } from 'node:crypto';
import { chunksOf, httpGet } from '../../../http/http-get.ts';
import type { Environment } from '../../../http/proxy-choice.ts';
import { textIn } from '../../../util/bounded-file.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { type ScalarPlace, scalarPlaces } from '../../../util/yaml/scalar-places.ts';

export interface WebTools {
  readonly environment: Environment;
  readonly abort: AbortSignal;
}

export interface Renewed {
  readonly text: string;
  /** Sentences that say where each SHA-256 comes from. */
  readonly said: readonly string[];
}

const SHA256 = /[0-9a-fA-F]{64}/;
const MOST_BYTES = 1024;
/** The architecture of a hash that counts for all hosts, if the address needs one. */
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
  const files = places.filter(({ path }) => isFile(path));
  const problems = [
    ...files.flatMap((each) => problemOf(each, from)),
    ...places.flatMap((each) => problemOfHash(each, places)),
  ];
  if (problems.length > 0)
    throw new RefitError('REFIT_CONTROL', `the manifest cannot get ${to} by itself`, {
      problems,
      hint: 'change these fields by hand',
    });
  const said: string[] = [];
  const edits: { readonly place: Place; readonly source: string }[] = [];
  for (const place of places) {
    if (isVersion(place.path) || files.includes(place))
      edits.push({ place, source: withVersion(place.source, from, to) });
    const url = urlOfHash(place, places);
    if (url === undefined) continue;
    const digest = await digestOf(withVersion(url, from, to), tools);
    said.push(`${place.field}: ${digest.sha256}, from ${digest.source}.`);
    edits.push({ place, source: place.source.replace(SHA256, digest.sha256) });
  }
  const changed = edits
    .toSorted((one, other) => other.place.start - one.place.start)
    .reduce(
      (whole, { place: { start, end }, source }) =>
        `${whole.slice(0, start)}${source}${whole.slice(end)}`,
      text,
    );
  return { text: changed, said };
}

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

function bare(version: string): string {
  return version.replace(/^v/, '');
}

/** A text may name the version with its `v` or without it, as packages do. */
function withVersion(text: string, from: string, to: string): string {
  return text.replaceAll(bare(from), bare(to));
}

function problemOf({ field, source }: Place, from: string): string[] {
  if (source.includes(bare(from))) return [];
  return [`${field} does not name ${from}, so the file of the new version is unknown: ${source}`];
}

function isHash({ path, source }: Place): boolean {
  return isOfBinaries(path) && path.includes('sha256') && SHA256.test(source);
}

/** Returns the address of the file that the hash is about; undefined if the place is no hash, or if there is no address. */
function urlOfHash(place: Place, places: readonly Place[]): string | undefined {
  if (!isHash(place)) return undefined;
  const at = place.path.indexOf('sha256');
  const binary = place.path.slice(0, at).join('.');
  const address = places.find(({ field }) => field === `${binary}.url`)?.source;
  const arch = place.path[at + 1];
  const url = address?.replace(/^["']|["']$/g, '');
  return arch === undefined ? url : url?.replaceAll(ARCH, arch);
}

function problemOfHash(place: Place, places: readonly Place[]): string[] {
  if (!isHash(place)) return [];
  const url = urlOfHash(place, places);
  if (url === undefined)
    return [`${place.field} is the SHA-256 of a file on the hosts, which only the hosts know`];
  if (url.includes(ARCH))
    return [
      `${place.field} is one SHA-256 for all processors; write one for each, such as {amd64: …}`,
    ];
  return [];
}

interface Digest {
  readonly sha256: string;
  readonly source: string;
}

/** Releases of Kubernetes have a file with the digest beside each binary. Without it, the binary itself is read. */
async function digestOf(url: string, tools: WebTools): Promise<Digest> {
  try {
    const beside = `${url}.sha256`;
    const published = await textAt(beside, tools).catch(() => undefined);
    const [sha256] = SHA256.exec(published ?? '') ?? [];
    if (sha256 !== undefined) return { sha256: sha256.toLowerCase(), source: beside };
    using answer = await open(url, tools);
    const hash = createHash('sha256');
    for await (const chunk of chunksOf(answer.response)) hash.update(chunk);
    return { sha256: hash.digest('hex'), source: 'the file itself' };
  } catch (error) {
    tools.abort.throwIfAborted();
    throw new RefitError('REFIT_CONTROL', `${url} cannot be had: ${messageOf(error)}`, {
      hint: 'check that the version is published there',
      cause: error,
    });
  }
}

async function textAt(url: string, tools: WebTools): Promise<string> {
  using answer = await open(url, tools);
  return await textIn(chunksOf(answer.response), MOST_BYTES, `${url} is larger than 1 KiB`);
}

async function open(url: string, { environment, abort }: WebTools) {
  const headers = { 'user-agent': 'refit-upgrade', 'accept-encoding': 'identity' };
  const answer = await httpGet({ url, headers, environment, source: 'the manifest' }, abort);
  const { statusCode } = answer.response;
  if (statusCode === 200) return answer;
  answer[Symbol.dispose]();
  throw new Error(`${answer.url.host} answered ${statusCode}`);
}
