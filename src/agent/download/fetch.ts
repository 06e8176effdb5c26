/** Downloads a payload into a partial file. It retries, resumes, keeps the limits and verifies the sha256. */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { dirname } from 'node:path';
import * as web from '../../http/http-get.ts';
import type { Environment } from '../../http/proxy-choice.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import { backoffDelay, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Tools } from '../../util/tools.ts';
import type { Files } from '../state/durable-files.ts';
import { hostVeto } from '../veto.ts';
import { diskRoom } from './disk-room.ts';
import type { PartialFile, PartialPaths } from './partial-file.ts';

export interface FetchRequest {
  readonly url: string;
  /** The sha256 as 64 hexadecimal digits in upper or lower case. If it is undefined, the download is not verified. */
  readonly sha256: string | undefined;
  readonly paths: PartialPaths;
  /**
   * The validator of a copy on this host. If the server still has the same file, it does not send
   * the bytes again.
   */
  readonly unless?: string;
  /** The User-Agent header: `refit-agent/<version> (<name of the object>)`. */
  readonly userAgent: string;
  readonly limits: DownloadLimits;
}

export interface FetchTools extends Tools {
  readonly files: Files;
  readonly environment: Environment;
  readonly abort: AbortSignal;
}

/**
 * Looks at the answer before its bytes are read. If it returns `isHere`, the payload is on this host already and is not
 * read.
 */
export type Inspect = (
  answer: web.Answer,
  validator: string | undefined,
) => Promise<{ readonly isHere: boolean; readonly name?: string }>;

/**
 * The download fails after this many consecutive attempts that received no byte. With the pauses between them these
 * attempts take about a minute.
 */
const MAX_BARREN_ATTEMPTS = 8;
/**
 * A resumed download starts again after a wrong hash, because the server may have mixed two payloads. After this many
 * wrong hashes it fails.
 */
const MOST_WRONG = 3;

/** One download that is running: the request, its partial file, and the function that inspects the answer. */
export type Fetching = FetchRequest &
  FetchTools & { readonly part: PartialFile; readonly inspect: Inspect };

/**
 * Resolves with `fetched` once the partial file is complete and has the wanted sha256, if there is one. Resolves with
 * `here` if `inspect` found the payload on this host.
 */
export async function fetchVerified(fetching: Fetching) {
  const { part, limits, clock, log } = fetching;
  const wanted = fetching.sha256?.toLowerCase();
  // Without a hash nothing proves that the bytes of an earlier process reached the disk.
  if (wanted === undefined) await part.restart({});
  const deadline = clock.monotonic() + limits.totalMs;
  for (let wrong = 1; ; wrong++) {
    if ((await fetchWhole(fetching, deadline)) === 'here') return 'here';
    const { sha256, pieced } = part;
    // Guard download-hash. Only bytes with the wanted hash are accepted.
    if (wanted === undefined || sha256 === wanted) return 'fetched';
    await part.restart({});
    if (!pieced || wrong === MOST_WRONG)
      throw new Error(`sha256 of the download is ${sha256}, wanted ${wanted}`);
    log.warn('a resumed download has the wrong sha256: starting again', { host: hostOf(fetching) });
  }
}

async function fetchWhole(fetching: Fetching, deadline: number) {
  const { part, clock, random, log, abort } = fetching;
  for (let barren = 0; ; barren++) {
    const before = part.bytes;
    try {
      return await attempt(fetching, deadline - clock.monotonic());
    } catch (error) {
      if (!(error instanceof web.TransientError)) throw error;
      if (part.bytes > before) barren = 0;
      if (barren + 1 === MAX_BARREN_ATTEMPTS)
        throw new Error(`gave up after ${barren + 1} attempts`, { cause: error });
      const waitMs = backoffDelay(barren, { base: 500, cap: 30_000, random });
      log.warn('the download is retried', {
        host: hostOf(fetching),
        reason: messageOf(error),
        waitMs,
      });
      await sleep(clock, waitMs, abort);
    }
  }
}

/** Makes one request. The bytes that were received stay in the partial file, even if the request fails. */
async function attempt(fetching: Fetching, remainingMs: number) {
  const { limits, clock, abort } = fetching;
  using guard = web.stallGuard(limits.stallMs, remainingMs, clock, abort);
  try {
    const get = requestFor(fetching);
    const headers = { ...get.headers, ...conditionsOf(fetching) };
    using answer = await web.httpGet({ ...get, headers }, guard.abort);
    guard.touch();
    return await take(answer, fetching, guard);
  } catch (error) {
    guard.abort.throwIfAborted();
    throw error;
  }
}

/**
 * Returns a part of a sentence that says which setting requires https and how to change it. Returns undefined if plain
 * http is allowed.
 */
function whoRequiresHttps(
  { requireHttps, httpsWithoutHash }: DownloadLimits,
  sha256: string | undefined,
): string | undefined {
  if (requireHttps === true)
    return 'https is required by spec.payloads.requireHttps of the UpgradePolicy, or by --require-https of the agent: set that field to false, or start the agent without that flag';
  // Guard cleartext-without-hash. Without a hash only https protects the bytes.
  if (httpsWithoutHash !== true || sha256 !== undefined) return undefined;
  return 'a download without a sha256 needs https: add the sha256 to the plan, or start the agent with --unverified-downloads allow';
}

/** Returns the request with the rules for downloads: which hosts and schemes it may use. */
export function requestFor(
  asked: Pick<Fetching, 'url' | 'sha256' | 'userAgent' | 'limits' | 'environment'>,
): web.Get {
  const { url, sha256, userAgent, limits, environment } = asked;
  const { allowInsecureRedirect, allowedHosts } = limits;
  return {
    url,
    headers: { 'user-agent': userAgent, 'accept-encoding': 'identity' },
    requireHttps: whoRequiresHttps(limits, sha256),
    allowInsecureRedirect,
    refuses: (address) => hostVeto(address, allowedHosts),
    environment,
  };
}

/**
 * Returns the status codes that fit the request. They differ for a request for the rest of a file, for a conditional
 * request, and for any other request.
 */
function fittingCodes(isForRest: boolean, isConditional: boolean): readonly number[] {
  if (isForRest) return [200, 206, 416];
  return isConditional ? [200, 304] : [200];
}

async function take(answer: web.Answer, fetching: Fetching, guard: web.StallGuard) {
  const { part, limits, paths, files } = fetching;
  const { response, url } = answer;
  const { statusCode = 0 } = response;
  const fitting = fittingCodes(part.bytes > 0, fetching.unless !== undefined);
  if (!fitting.includes(statusCode))
    throw new Error(`${url.host} answered ${statusCode}, which does not fit the request`);
  if (statusCode === 304) return 'here';
  if (statusCode === 416) return await confirmWhole(part, response);
  if (await isHere(answer, fetching)) return 'here';
  const { maxBytes, reserveBytes } = limits;
  const expected = Number(response.headers['content-length'] ?? 0);
  if (part.bytes + expected > maxBytes) throw tooBig(fetching);
  const room = diskRoom(dirname(paths.part), reserveBytes, files, part.bytes);
  await room.require(expected);
  for await (const chunk of web.chunksOf(response)) {
    guard.touch();
    if (part.bytes + chunk.length > maxBytes) throw tooBig(fetching);
    await room.count(chunk.length);
    await part.append(chunk);
  }
  const [, total] = /\/(\d+)$/.exec(response.headers['content-range'] ?? '') ?? [];
  if (part.bytes < Number(total))
    throw new web.TransientError('the server sent less than the rest of the file');
  return 'fetched';
}

/**
 * Returns the headers that make the request conditional. If neither a hash nor a validator can prove that the payload
 * is still the same, it is requested from its start.
 */
function conditionsOf({ part: { bytes, origin }, unless, sha256 }: Fetching): OutgoingHttpHeaders {
  const ifRange = origin.validator && { 'if-range': origin.validator };
  if (bytes > 0 && (sha256 ?? ifRange)) return { range: `bytes=${bytes}-`, ...ifRange };
  if (unless === undefined) return {};
  return { [unless.startsWith('"') ? 'if-none-match' : 'if-modified-since']: unless };
}

/**
 * Checks the answer to a request for a range that begins at or after the end of the file on the server. The partial
 * file is complete if it has exactly the size of that file.
 */
async function confirmWhole(part: PartialFile, response: IncomingMessage) {
  if (response.headers['content-range'] === `bytes */${part.bytes}`) return 'fetched';
  await part.restart({});
  throw new web.TransientError(
    'the file on the server is now shorter than the part that was downloaded',
  );
}

/**
 * Returns true if the payload is on this host already. Otherwise it prepares the partial file, so that the bytes of the
 * answer can be appended.
 */
async function isHere(answer: web.Answer, { part, inspect }: Fetching): Promise<boolean> {
  const { response } = answer;
  const { etag, 'last-modified': date } = response.headers;
  // The validator is for the header If-Range, which works only with strong entity tags (RFC 9110, 13.1.5).
  const validator = etag !== undefined && !etag.startsWith('W/') ? etag : date;
  if (response.statusCode === 206) {
    await continueAt(part, response, validator);
    return false;
  }
  const { isHere, name } = await inspect(answer, validator);
  if (!isHere) await part.restart({ ...(validator && { validator }), ...(name && { name }) });
  return isHere;
}

async function continueAt(
  part: PartialFile,
  response: IncomingMessage,
  validator: string | undefined,
): Promise<void> {
  const start = /^bytes (\d+)-/.exec(response.headers['content-range'] ?? '')?.[1];
  const known = part.origin.validator;
  if (Number(start) === part.bytes && (known === undefined || known === validator)) {
    part.pieced = true;
    return;
  }
  await part.restart({});
  throw new web.TransientError('the server continued with the bytes of another file');
}

/** Returns the host of the URL, which is all that may be logged: the rest may contain a password or a signature. */
function hostOf({ url }: FetchRequest): string {
  return new URL(url).host;
}

function tooBig({ limits }: FetchRequest): Error {
  return new Error(`the download is bigger than ${limits.maxBytes} bytes`);
}

export interface DownloadLimits {
  readonly maxBytes: number;
  readonly reserveBytes: number;
  readonly totalMs: number;
  /** An attempt fails if no byte arrives for this many milliseconds. This time includes the time to connect. */
  readonly stallMs: number;
  /** If true, plain http is refused, also for redirects. */
  readonly requireHttps?: true;
  /** If true, a redirect from https to plain http is followed. */
  readonly allowInsecureRedirect?: true;
  /** If true, only a download with a sha256 may use plain http. */
  readonly httpsWithoutHash?: boolean;
  /** The hosts that may be used, redirects included. If it is absent, any host may be used. */
  readonly allowedHosts?: readonly string[] | undefined;
}

/** Returns the limits for a signal. Limits in the policy of the signal override the limits from the flags. */
export function limitsFor(limits: DownloadLimits, policy: AgentPolicy = {}): DownloadLimits {
  const { downloadTimeoutMs: totalMs = limits.totalMs, requireHttps } = policy;
  const { diskReserveBytes: reserveBytes = limits.reserveBytes } = policy;
  return { ...limits, totalMs, reserveBytes, ...(requireHttps && { requireHttps }) };
}
