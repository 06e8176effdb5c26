/** Finds the files of a k0s version where they are published, and the sha256 of each. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path/posix';
import type { K0sUpdate } from '../../../api/autopilot/plan.ts';
import { type Answer, chunksOf, httpGet } from '../../../http/http-get.ts';
import type { Environment } from '../../../http/proxy-choice.ts';
import { readIndex } from '../../../updates/channel/read-index.ts';
import { textIn } from '../../../util/bounded-file.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { ownMember } from '../../../util/own-member.ts';

export type Platforms = K0sUpdate['platforms'];

/** The releases of k0s itself. Each has a folder with the files of all platforms, and a list of their digests. */
const RELEASES = 'https://github.com/k0sproject/k0s/releases/download';
const LIST = 'sha256sums.txt';
const MOST_BYTES = 64 * 1024;
const SHA256 = /^[0-9a-f]{64}$/;

export interface Wanted {
  readonly version: string;
  /** The platforms of the nodes, each as `<os>-<arch>`. */
  readonly platforms: readonly string[];
  /** What the user wrote for `--from`. */
  readonly from: string | undefined;
  /** The version and the files of the last Plan. */
  readonly last: { readonly version: string; readonly platforms: Platforms } | undefined;
}

export interface WebTools {
  readonly environment: Environment;
  readonly abort: AbortSignal;
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
        return { platform, ...(await digestOf(url, tools)) };
      } catch (error) {
        tools.abort.throwIfAborted();
        return refuse(
          `k0s ${version} for ${platform} cannot be had from ${url}: ${messageOf(error)}`,
          'check the version, or say with --from where its files are',
          error,
        );
      }
    }),
  );
  return {
    platforms: Object.fromEntries(
      found.map(({ platform, url, sha256 }) => [platform, { url, sha256 }]),
    ),
    said: found.map(
      ({ platform, url, sha256, source }) =>
        `${platform}: ${url}, sha256 ${sha256} from ${source}.`,
    ),
  };
}

function refuse(message: string, hint: string, cause?: unknown): never {
  throw new RefitError('REFIT_CONTROL', message, { hint, cause });
}

/** Returns the address of the file for the platform. Throws REFIT_USAGE if `--from` is no address. */
function urlOf(platform: string, { version, from, last }: Wanted): string {
  const [os = '', arch = ''] = platform.split('-');
  const known = ownMember(last?.platforms, platform)?.url;
  if (from === undefined && last !== undefined && known?.includes(last.version) === true)
    return known.replaceAll(last.version, version);
  const place = from ?? RELEASES;
  const isTemplate = place.includes('{');
  const folder = place.endsWith('/') ? place.slice(0, -1) : place;
  const url = isTemplate
    ? place.replaceAll('{version}', version).replaceAll('{os}', os).replaceAll('{arch}', arch)
    : `${folder}/${version}/k0s-${version}-${arch}`;
  const protocol = URL.canParse(url) ? new URL(url).protocol : '';
  if (protocol === 'https:' || protocol === 'http:') return url;
  throw new RefitError(
    'REFIT_USAGE',
    `--from must be an https address such as ${RELEASES}, found "${place}"`,
    {
      hint: 'the files are expected at FROM/VERSION/k0s-VERSION-ARCH; for other names, use the placeholders {version}, {os} and {arch}',
    },
  );
}

interface Digest {
  readonly url: string;
  readonly sha256: string;
  /** What the digest was taken from. */
  readonly source: string;
}

/** Rejects if the file does not exist. Its digest is that of the published list; without a list, that of the file. */
async function digestOf(url: string, tools: WebTools): Promise<Digest> {
  const file = await open(url, tools);
  try {
    const { href } = new URL(LIST, url);
    const name = decodeURIComponent(basename(new URL(url).pathname));
    const listed = await listedDigest(href, name, tools);
    if (listed !== undefined) return { url, sha256: listed, source: `the list ${href}` };
    const hash = createHash('sha256');
    for await (const chunk of chunksOf(file.response)) hash.update(chunk);
    return { url, sha256: hash.digest('hex'), source: 'the file, because no list has it' };
  } finally {
    file[Symbol.dispose]();
  }
}

async function open(url: string, { environment, abort }: WebTools): Promise<Answer> {
  const headers = { 'user-agent': 'refit-upgrade', 'accept-encoding': 'identity' };
  const answer = await httpGet({ url, headers, environment, source: '--from' }, abort);
  const { statusCode } = answer.response;
  if (statusCode === 200) return answer;
  answer[Symbol.dispose]();
  throw new Error(`${answer.url.host} answered ${statusCode}`);
}

/** Resolves with the digest of the file in the list; undefined if there is no list, or if it lacks the file. */
async function listedDigest(
  url: string,
  name: string,
  tools: WebTools,
): Promise<string | undefined> {
  const list = await open(url, tools).catch(() => {
    tools.abort.throwIfAborted();
    return undefined;
  });
  if (list === undefined) return undefined;
  using answer = list;
  const text = await textIn(
    chunksOf(answer.response),
    MOST_BYTES,
    `the list ${url} is larger than 64 KiB`,
  );
  for (const line of text.split('\n')) {
    const [digest = '', file = ''] = line.trim().split(/\s+\*?/);
    if (file === name && SHA256.test(digest)) return digest;
  }
  return undefined;
}

/** Takes the files from the index of a channel, as update servers of k0s publish it. */
async function filesOfChannel(
  from: string,
  { version, platforms }: Wanted,
  tools: WebTools,
): Promise<PublishedFiles> {
  const index = await readChannel(from, tools);
  if (index.version !== version)
    return refuse(
      `the channel ${from} has ${index.version}, and not ${version}`,
      `run refit upgrade ${index.version} --from ${from}`,
    );
  const reason = ownMember(index.withdrawn, version);
  if (reason !== undefined)
    return refuse(
      `the channel ${from} has withdrawn ${version}: ${reason}`,
      'choose another version',
    );
  const missing = platforms.filter(
    (platform) => ownMember(index.k0s, platform)?.sha256 === undefined,
  );
  if (missing.length > 0)
    return refuse(
      `the channel ${from} has no file with a sha256 for ${missing.join(', ')}`,
      'say with --from where the files are',
    );
  const files = Object.fromEntries(
    platforms.map((platform) => [platform, ownMember(index.k0s, platform) ?? { url: '' }]),
  );
  return {
    platforms: files,
    said: Object.entries(files).map(
      ([platform, { url, sha256 }]) =>
        `${platform}: ${url}, sha256 ${sha256} from the channel ${from}.`,
    ),
  };
}

async function readChannel(from: string, tools: WebTools): Promise<ReturnType<typeof readIndex>> {
  try {
    using answer = await open(from, tools);
    const why = `the index ${from} is larger than 64 KiB`;
    return readIndex(await textIn(chunksOf(answer.response), MOST_BYTES, why));
  } catch (error) {
    tools.abort.throwIfAborted();
    return refuse(`the channel ${from} cannot be read: ${messageOf(error)}`, 'check --from', error);
  }
}
