/** Owns getting a payload to its staging path: retried, resumed, bounded, verified, and never fetched twice. */
import { chmod, lstat, rename, rm, statfs } from 'node:fs/promises';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { dirname } from 'node:path';
import { backoffDelay } from '../util/backoff.ts';
import type { Clock } from '../util/clock.ts';
import { sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Logger } from '../util/log.ts';
import { syncPath } from './durable-files.ts';
import { hashFile } from './hash-file.ts';
import { chunksOf, httpGet, TransientError } from './http-get.ts';
import type { PartialPaths } from './partial-file.ts';
import { PartialFile } from './partial-file.ts';
import { StallGuard } from './stall-guard.ts';

export interface DownloadLimits {
  readonly maxBytes: number;
  /** Milliseconds for all attempts together. */
  readonly totalMs: number;
  /** Milliseconds without a received byte, connecting included. */
  readonly stallMs: number;
}

export interface DownloadRequest {
  readonly url: string;
  /** 64 hexadecimal digits of any case; nothing can be verified where undefined. */
  readonly sha256: string | undefined;
  /** Where the verified payload goes, executable; in the directory of `paths.part`. */
  readonly staged: string;
  readonly paths: PartialPaths;
  readonly userAgent: string;
  readonly limits: DownloadLimits;
}

export interface DownloadTools {
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Attempts in a row that bring no byte: with the waits between them about a minute. */
const MAX_BARREN_ATTEMPTS = 8;
const RETRY = { base: 500, cap: 30_000 };

/** Resolves when the payload is staged and on the disk; rejects with the reason for people, or with the signal's. */
export async function download(request: DownloadRequest, tools: DownloadTools): Promise<void> {
  const { url, staged, paths } = request;
  const sha256 = request.sha256?.toLowerCase();
  await using part = await PartialFile.open({ url, sha256 }, paths);
  if (part.wanted !== undefined && (await isStaged(staged, part.wanted))) return;
  if (part.wanted === undefined || part.sha256 !== part.wanted) {
    // Nothing else can prove that bytes of an earlier process reached the disk whole.
    if (sha256 === undefined) await part.restart(undefined);
    await fetchVerified(part, { ...request, sha256 }, tools);
  }
  await part.seal();
  await rename(paths.part, staged);
  await syncPath(dirname(staged));
}

/**
 * Whoever staged the payload, which may have been the original, is not trusted to have made it executable or to have
 * brought it to the disk. A symbolic link is no payload: what it leads to may change after this look.
 */
async function isStaged(staged: string, wanted: string): Promise<boolean> {
  const found = await lstat(staged).catch(() => undefined);
  if (found?.isFile() !== true || (await hashFile(staged)) !== wanted) return false;
  await chmod(staged, 0o755);
  await syncPath(staged);
  return true;
}

/** Removes everything that a download leaves; what is not there is fine. */
export async function discardDownload({ staged, paths }: Pick<DownloadRequest, 'staged' | 'paths'>): Promise<void> {
  for (const path of [staged, paths.part, paths.record]) await rm(path, { force: true });
}

async function fetchVerified(part: PartialFile, request: DownloadRequest, tools: DownloadTools): Promise<void> {
  const wanted = request.sha256;
  const deadline = tools.clock.monotonic() + request.limits.totalMs;
  for (;;) {
    await fetchWhole(part, request, tools, deadline);
    const { sha256, pieced } = part;
    if (wanted === undefined || sha256 === wanted) return;
    await part.restart(undefined);
    if (!pieced) throw new Error(`sha256 of the download is ${sha256}, wanted ${wanted}`);
    tools.log.warn('a resumed download has the wrong sha256: starting again', { host: hostOf(request) });
  }
}

async function fetchWhole(
  part: PartialFile,
  request: DownloadRequest,
  tools: DownloadTools,
  deadline: number,
): Promise<void> {
  for (let barren = 0; ; barren++) {
    const before = part.bytes;
    try {
      return await attempt(part, request, tools, deadline);
    } catch (error) {
      if (!(error instanceof TransientError)) throw error;
      if (part.bytes > before) barren = 0;
      if (barren + 1 === MAX_BARREN_ATTEMPTS) throw new Error(`gave up after ${barren + 1} attempts`, { cause: error });
      const waitMs = backoffDelay(barren, { ...RETRY, random: tools.random });
      tools.log.warn('the download is tried again', { host: hostOf(request), reason: messageOf(error), waitMs });
      await sleep(tools.clock, waitMs, tools.signal);
    }
  }
}

/** One request; whatever it brought stays in the part. */
async function attempt(
  part: PartialFile,
  request: DownloadRequest,
  { clock, signal }: DownloadTools,
  deadline: number,
): Promise<void> {
  const { stallMs } = request.limits;
  using guard = new StallGuard({ stallMs, remainingMs: deadline - clock.monotonic() }, clock, signal);
  try {
    const response = await httpGet(request.url, headersFor(part, request.userAgent), guard.signal);
    guard.touch();
    if (response.statusCode === 416) return await confirmWhole(part, response);
    await position(part, response);
    await checkRoom(part, response, request);
    for await (const chunk of chunksOf(response)) {
      guard.touch();
      if (part.bytes + chunk.length > request.limits.maxBytes) throw tooBig(request);
      await part.append(chunk);
    }
  } catch (error) {
    guard.signal.throwIfAborted();
    throw error;
  }
}

function headersFor({ bytes, validator }: PartialFile, userAgent: string): OutgoingHttpHeaders {
  const headers = { 'user-agent': userAgent, 'accept-encoding': 'identity' };
  if (bytes === 0) return headers;
  return { ...headers, range: `bytes=${bytes}-`, ...(validator && { 'if-range': validator }) };
}

/** The answer to a range behind the end: fine where the part is the whole. */
async function confirmWhole(part: PartialFile, response: IncomingMessage): Promise<void> {
  response.destroy();
  if (response.headers['content-range'] === `bytes */${part.bytes}`) return;
  await part.restart(undefined);
  throw new TransientError('the payload became shorter than what was fetched of it');
}

/** Puts the part where the answer's first byte belongs. */
async function position(part: PartialFile, response: IncomingMessage): Promise<void> {
  const validator = validatorOf(response);
  if (response.statusCode === 200) return await part.restart(validator);
  const start = /^bytes (\d+)-/.exec(response.headers['content-range'] ?? '')?.[1];
  if (Number(start) === part.bytes && (part.validator === undefined || part.validator === validator)) {
    part.pieced = true;
    return;
  }
  response.destroy();
  await part.restart(undefined);
  throw new TransientError('the server continued another payload');
}

/** If-Range knows only strong entity tags (RFC 9110, 13.1.5). */
function validatorOf({ headers }: IncomingMessage): string | undefined {
  const { etag } = headers;
  return etag !== undefined && !etag.startsWith('W/') ? etag : headers['last-modified'];
}

async function checkRoom(part: PartialFile, response: IncomingMessage, request: DownloadRequest): Promise<void> {
  const expected = Number(response.headers['content-length'] ?? 0);
  if (part.bytes + expected > request.limits.maxBytes) throw tooBig(request);
  const directory = dirname(request.staged);
  // A file system that does not tell its room is written to all the same.
  const { bavail, bsize } = await statfs(directory).catch(() => ({ bavail: Infinity, bsize: 1 }));
  if (bavail * bsize >= expected) return;
  throw new Error(`${directory} has room for ${bavail * bsize} bytes, the download needs ${expected}`);
}

/** All that a log may hold of a URL: the rest of it may be a password, or a signature that is as good as one. */
function hostOf({ url }: DownloadRequest): string {
  return new URL(url).host;
}

function tooBig({ limits }: DownloadRequest): Error {
  return new Error(`the download is bigger than ${limits.maxBytes} bytes`);
}
