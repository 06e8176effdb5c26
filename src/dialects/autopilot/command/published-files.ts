/** Finds the files of a k0s version where they are published, and the sha256 of each. */
import { basename } from 'node:path/posix';
import type { K0sUpdate } from '../../../api/autopilot/plan.ts';
import {
  checkFile,
  digestOfFile,
  textAt,
  type WebTools,
} from '../../../cli/upgrade/published-file.ts';
import { readIndex } from '../../../updates/channel/read-index.ts';
import { failing, messageOf, RefitError } from '../../../util/errors.ts';
import { ownMember } from '../../../util/own-member.ts';
import { printableUrl } from '../../../util/printable-url.ts';
import { withOtherVersion } from '../../../util/renamed-version.ts';

export type Platforms = K0sUpdate['platforms'];

/** The releases of k0s itself. Each has a folder with the files of all platforms, and a list of their digests. */
const RELEASES = 'https://github.com/k0sproject/k0s/releases/download';
const LIST = 'sha256sums.txt';
const SHA256 = /^[0-9a-f]{64}$/;
const refuse = failing('REFIT_CONTROL');

export interface Wanted {
  readonly version: string;
  /** The platforms of the nodes, each as `<os>-<arch>`. */
  readonly platforms: readonly string[];
  /** What the user wrote for `--from`. */
  readonly from: string | undefined;
  /** The version and the files of the last Plan. */
  readonly last: { readonly version: string; readonly platforms: Platforms } | undefined;
}

export interface PublishedFiles {
  readonly platforms: Platforms;
  /** Sentences that say where the files and their digests come from. */
  readonly said: readonly string[];
}

/** Rejects with REFIT_CONTROL if a file of the version is not published. */
export async function publishedFiles(wanted: Wanted, tools: WebTools): Promise<PublishedFiles> {
  const { from, version, platforms } = wanted;
  if (from !== undefined && /\/index\.yaml(\?.*)?$/.test(from))
    return await filesOfChannel(from, wanted, tools);
  const found = await Promise.all(
    platforms.map(async (platform) => {
      const url = urlOf(platform, wanted);
      try {
        return { platform, url, ...(await digestOf(url, archOf(platform), tools)) };
      } catch (error) {
        tools.abort.throwIfAborted();
        if (error instanceof RefitError) throw error;
        throw new RefitError(
          'REFIT_CONTROL',
          `k0s ${version} for ${platform} cannot be had from ${printableUrl(url)}: ${messageOf(error)}`,
          { hint: 'check the version, or say with --from where its files are', cause: error },
        );
      }
    }),
  );
  return {
    platforms: Object.fromEntries(
      found.map(({ platform, url, sha256 }) => [platform, { url, sha256 }]),
    ),
    said: found.flatMap(({ platform, url, sha256, source }) => [
      `${platform}: ${printableUrl(url)}, sha256 ${sha256} from ${source}.`,
      ...plainHttpSentence(url),
    ]),
  };
}

function archOf(platform: string): string {
  return platform.slice(platform.indexOf('-') + 1);
}

function plainHttpSentence(url: string): string[] {
  return url.startsWith('http:')
    ? [
        'Everybody on the network path of plain http can replace the file and the sha256 that was read.',
      ]
    : [];
}

/** Returns the address of the file for the platform. Throws REFIT_USAGE if `--from` is no address. */
function urlOf(platform: string, wanted: Wanted): string {
  const { version, from, last } = wanted;
  if (from === undefined && last !== undefined) return urlAsBefore(platform, version, last);
  const place = from ?? RELEASES;
  checkTemplate(place, wanted);
  const [os = ''] = platform.split('-');
  const folder = place.endsWith('/') ? place.slice(0, -1) : place;
  return place.includes('{')
    ? place
        .replaceAll('{version}', version)
        .replaceAll('{os}', os)
        .replaceAll('{arch}', archOf(platform))
    : `${folder}/${version}/k0s-${version}-${archOf(platform)}`;
}

/** Returns the address of the last Plan, with another version. */
function urlAsBefore(platform: string, version: string, last: NonNullable<Wanted['last']>): string {
  const known = ownMember(last.platforms, platform)?.url;
  if (known === undefined)
    return refuse(
      `the last Plan has no file for ${platform}, so it does not say where that of ${version} is; say it with --from`,
    );
  const url = withOtherVersion(known, last.version, version);
  if (url === undefined)
    return refuse(
      `the address of the last Plan does not name its version ${last.version}, so it does not say where ${version} is: ${printableUrl(known)}; say it with --from`,
    );
  return url;
}

function checkTemplate(place: string, { platforms }: Wanted): void {
  const fail = failing('REFIT_USAGE', '--from ', {
    hint: 'the files are expected at FROM/VERSION/k0s-VERSION-ARCH; for other names, use the placeholders {version}, {os} and {arch}',
  });
  const isAddress = /^https?:\/\//.test(place) && URL.canParse(place.replaceAll(/[{}]/g, ''));
  if (!isAddress) fail(`must be an address such as ${RELEASES}, found "${place}"`);
  if (new URL(place.replaceAll(/[{}]/g, '')).username !== '')
    fail(
      'must have no user and no password, because every user who may read the Plan could read them',
    );
  if (!place.includes('{')) return;
  if (!place.includes('{version}')) fail(`has placeholders, but not {version}: "${place}"`);
  if (platforms.length > 1 && !place.includes('{arch}'))
    fail(
      `has placeholders, but not {arch}, and the nodes have several platforms: ${platforms.join(', ')}`,
    );
}

interface Digest {
  readonly sha256: string;
  /** What the digest was taken from. */
  readonly source: string;
}

/** Rejects if the file does not exist. Its digest is that of the published list; without a list, that of the file. */
async function digestOf(url: string, arch: string, tools: WebTools): Promise<Digest> {
  await checkFile(url, arch, tools);
  const { href } = new URL(LIST, url);
  const name = decodeURIComponent(basename(new URL(url).pathname));
  const list = await textAt(href, tools);
  if (list === undefined)
    return {
      sha256: await digestOfFile(url, arch, tools),
      source: `the file itself, because ${printableUrl(href)} does not exist`,
    };
  for (const line of list.split('\n')) {
    const [digest = '', file = ''] = line.trim().split(/\s+\*?/);
    const sha256 = digest.toLowerCase();
    if (file === name && SHA256.test(sha256))
      return { sha256, source: `the list ${printableUrl(href)}` };
  }
  throw new Error(`the list ${printableUrl(href)} has no sha256 of ${name}`);
}

/** Takes the files from the index of a channel, as update servers of k0s publish it. */
async function filesOfChannel(
  from: string,
  { version, platforms }: Wanted,
  tools: WebTools,
): Promise<PublishedFiles> {
  const index = await readChannel(from, tools);
  const shown = printableUrl(from);
  if (index.version !== version)
    return refuse(
      `the channel ${shown} has ${index.version}, and not ${version}; run this with ${index.version} for it`,
    );
  const reason = ownMember(index.withdrawn, version);
  if (reason !== undefined)
    return refuse(
      `the channel ${shown} has withdrawn ${version}: ${reason}; choose another version`,
    );
  const found = platforms.map((platform) => ({ platform, file: ownMember(index.k0s, platform) }));
  const missing = found.filter(({ file }) => file?.sha256 === undefined);
  if (missing.length > 0)
    return refuse(
      `the channel ${shown} has no file with a sha256 for ${missing.map(({ platform }) => platform).join(', ')}; say with --from where the files are`,
    );
  const files = found.flatMap(({ platform, file }) =>
    file === undefined ? [] : [{ platform, file }],
  );
  return {
    platforms: Object.fromEntries(files.map(({ platform, file }) => [platform, file])),
    said: files.flatMap(({ platform, file: { url, sha256 = '' } }) => [
      `${platform}: ${printableUrl(url)}, sha256 ${sha256} from the channel ${shown}.`,
      ...plainHttpSentence(from),
    ]),
  };
}

async function readChannel(from: string, tools: WebTools): Promise<ReturnType<typeof readIndex>> {
  const what = `the channel ${printableUrl(from)}`;
  try {
    const text = await textAt(from, tools);
    if (text === undefined) throw new Error('it does not exist');
    return readIndex(text);
  } catch (error) {
    tools.abort.throwIfAborted();
    throw new RefitError('REFIT_CONTROL', `${what} cannot be read: ${messageOf(error)}`, {
      hint: 'check --from',
      cause: error,
    });
  }
}
