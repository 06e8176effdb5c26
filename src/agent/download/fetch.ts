/** Downloads a payload into a partial file: with retries, resumption, limits and verification. */
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
  /** 64 hexadecimal digits in any case; undefined: the download is not verified. */
  readonly sha256: string | undefined;
  readonly paths: PartialPaths;
  /** Validator of a copy that is here already: the server need not send the same bytes again. */
  readonly unless?: string;
  /** `refit-agent/<version> (<name of the object>)`. */
  readonly userAgent: string;
  readonly limits: DownloadLimits;
}

export interface FetchTools extends Tools {
  readonly files: Files;
  readonly environment: Environment;
  readonly abort: AbortSignal;
}

/** What is here already is not read. */
export type Inspect = (
  answer: web.Answer,
  validator: string | undefined,
) => Promise<{ readonly isHere: boolean; readonly name?: string }>;

/** Attempts in a row that bring no byte: with the waits between them about a minute. */
const MAX_BARREN_ATTEMPTS = 8;
/** A server may have mixed two payloads once; after that the hash is wrong. */
const MOST_WRONG = 3;

/** One fetch under way: what is wanted, into which part, and what looks at the bytes. */
export type Fetching = FetchRequest &
  FetchTools & { readonly part: PartialFile; readonly inspect: Inspect };

/** Resolves with `fetched` once the part is complete and, if a sha256 is wanted, has it. */
export async function fetchVerified(fetching: Fetching) {
  const { part, limits, clock, log } = fetching;
  const wanted = fetching.sha256?.toLowerCase();
  // Without a hash nothing proves that the bytes of an earlier process reached the disk.
  if (wanted === undefined) await part.restart({});
  const deadline = clock.monotonic() + limits.totalMs;
  for (let wrong = 1; ; wrong++) {
    if ((await fetchWhole(fetching, deadline)) === 'here') return 'here';
    const { sha256, pieced } = part;
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

/** One request; the bytes it received stay in the part. */
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

/** And what lifts that, as part of a sentence; undefined if nobody does. */
function whoRequiresHttps(
  { requireHttps, httpsWithoutHash }: DownloadLimits,
  sha256: string | undefined,
): string | undefined {
  if (requireHttps === true)
    return 'https is required by spec.payloads.requireHttps of the UpgradePolicy, or by --require-https of the agent: false there, or the agent without it, lifts this';
  if (httpsWithoutHash !== true || sha256 !== undefined) return undefined;
  return 'a download without a sha256 needs https: add the sha256 to the plan, or start the agent with --unverified-downloads allow';
}

/** Held to the rules for downloads. */
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

/** The status codes that answer a request: one for the rest of a file, or one for a file unless it is as it was. */
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
    throw new Error(`${url.host} answered ${statusCode}, which nothing asked for`);
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
    throw new web.TransientError('the server sent less than the rest');
  return 'fetched';
}

/** Where neither a hash nor a validator proves that it is the same payload still, it is asked for anew. */
function conditionsOf({ part: { bytes, origin }, unless, sha256 }: Fetching): OutgoingHttpHeaders {
  const ifRange = origin.validator && { 'if-range': origin.validator };
  if (bytes > 0 && (sha256 ?? ifRange)) return { range: `bytes=${bytes}-`, ...ifRange };
  if (unless === undefined) return {};
  return { [unless.startsWith('"') ? 'if-none-match' : 'if-modified-since']: unless };
}

/** The answer to a range behind the end: right when the part is complete. */
async function confirmWhole(part: PartialFile, response: IncomingMessage) {
  if (response.headers['content-range'] === `bytes */${part.bytes}`) return 'fetched';
  await part.restart({});
  throw new web.TransientError('the payload became shorter than what was fetched of it');
}

/** True when the payload is here already; otherwise the part is made ready for the answer's first byte. */
async function isHere(answer: web.Answer, { part, inspect }: Fetching): Promise<boolean> {
  const { response } = answer;
  const { etag, 'last-modified': date } = response.headers;
  // If-Range knows only strong entity tags (RFC 9110, 13.1.5).
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
  throw new web.TransientError('the server continued another payload');
}

/** The only part of a URL that may be logged: the rest may contain a password or a signature. */
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
  /** Milliseconds without a received byte, connecting included. */
  readonly stallMs: number;
  /** True: redirects to plain http are refused, too. */
  readonly requireHttps?: true;
  /** A redirect from https to plain http is followed. */
  readonly allowInsecureRedirect?: true;
  /** True: only a download with a sha256 may come over plain http. */
  readonly httpsWithoutHash?: boolean;
  /** Hosts that may be asked, redirects included; absent: any. */
  readonly allowedHosts?: readonly string[] | undefined;
}

/** A signal's policy overrides the flags. */
export function limitsFor(limits: DownloadLimits, policy: AgentPolicy = {}): DownloadLimits {
  const { downloadTimeoutMs: totalMs = limits.totalMs, requireHttps } = policy;
  const { diskReserveBytes: reserveBytes = limits.reserveBytes } = policy;
  return { ...limits, totalMs, reserveBytes, ...(requireHttps && { requireHttps }) };
}
