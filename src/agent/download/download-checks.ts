/**
 * Checks before the start of a rollout whether this host can reach and store the downloads that the leader names. It
 * also measures the free space, even if no check is requested.
 */
import * as files from 'node:fs/promises';
import { type Get, httpGet } from '../../http/http-get.ts';
import type { DownloadAnswer } from '../../signal/agent-presence.ts';
import type { Annotations, SignalCommand } from '../../signal/annotations.ts';
import { isKeptFileUrl } from '../../signal/kept-file.ts';
import { type DownloadCheck, decodeDownloadCheck, downloadCheckId } from '../../signal/prefetch.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { diskRoom } from './disk-room.ts';
import {
  type DownloadLimits,
  type FetchRequest,
  type FetchTools,
  limitsFor,
  requestFor,
} from './fetch.ts';
import { notKept } from './stage-binary.ts';

export interface DownloadChecksParts
  extends Pick<FetchRequest, 'limits' | 'userAgent'>,
    Pick<FetchTools, 'clock' | 'environment'> {
  /** Returns the place to which payloads of this kind are downloaded; undefined while it is not known. */
  readonly placeFor: (kind: SignalCommand['kind']) => Promise<DownloadPlace | undefined>;
}

/**
 * Carries out the check that the annotations of an object ask for, and resolves with the answer. If they ask for no check, it resolves with
 * the last answer, which saves a write. Never rejects.
 */
export type DownloadChecks = (annotations?: Annotations) => Promise<DownloadAnswer>;

export interface DownloadPlace {
  readonly directory: string;
  /** The files of an earlier download. The next download continues or replaces them. */
  readonly present: readonly string[];
  /**
   * Resolves with the kept binary of this host, which the agent takes instead of a download with the same sha256. It is
   * asked only for a check.
   */
  readonly kept?: () => Promise<{ readonly path: string; readonly sha256: string } | undefined>;
}

/**
 * The milliseconds for which an answer stays valid: `possible` if all downloads were possible, otherwise `impossible`.
 * The times are limited, because servers and disks change while a plan waits for its maintenance window.
 */
const LASTING = { possible: 600_000, impossible: 50_000 };
/**
 * The time limit for one request in milliseconds. Two requests take less time together than a leader waits for the
 * answer.
 */
const TIMEOUT_MS = 4_000;
/** The highest number of free bytes that the agent reports. A leader does not need to know about more free space. */
const MOST_ROOM = 2 ** 32;

/** Returns a function that makes the checks. It remembers its last answer. */
export function downloadChecks({
  clock,
  limits,
  userAgent,
  environment,
  placeFor,
}: DownloadChecksParts): DownloadChecks {
  let known: DownloadAnswer = { id: '' };
  let until = Number.NEGATIVE_INFINITY;

  async function tryAll({ commands, policy }: DownloadCheck) {
    const own = limitsFor(limits, policy);
    const found = await Promise.all(commands.map(async (each) => await tryOne(each, own)));
    const problems = new Set(found.flatMap(({ problem }) => problem ?? []));
    const bytes = Math.max(0, ...found.map((each) => each.bytes));
    return { bytes, ...(problems.size > 0 && { problem: [...problems].join('; ') }) };
  }

  async function tryOne({ url, sha256, kind }: SignalCommand, own: DownloadLimits) {
    let bytes = 0;
    try {
      const place = await placeFor(kind);
      const kept = sha256 === undefined ? undefined : await place?.kept?.();
      const isKept = kept !== undefined && kept.sha256 === sha256?.toLowerCase();
      if (!isKept && isKeptFileUrl(url)) return { bytes, problem: notKept(sha256) };
      bytes = isKept
        ? await sizeOnDisk(kept.path)
        : await sizeOf(requestFor({ url, sha256, userAgent, limits: own, environment }));
      if (!isKept && bytes > own.maxBytes)
        throw new Error(`it has ${bytes} bytes, which is more than the limit of ${own.maxBytes}`);
      if (!place) return { bytes };
      const sizes = await Promise.all(place.present.map(sizeOnDisk));
      const reusable = Math.max(...sizes, 0);
      if (reusable === 0 || bytes > reusable)
        await diskRoom(place.directory, own.reserveBytes, files).require(bytes - reusable);
      return { bytes };
    } catch (error) {
      return { bytes, problem: `${printableUrl(url)}: ${messageOf(error)}` };
    }
  }

  /**
   * Returns the free bytes of the disk for binaries or of the disk for bundles, whichever is smaller; undefined while
   * one of these places is unknown. The number is rounded down to a power of two, so that it seldom changes. The agent
   * writes each change of the number to the API server.
   */
  async function room(): Promise<number | undefined> {
    const binary = await placeFor('k0supdate');
    const bundles = await placeFor('airgapupdate');
    if (!binary || !bundles) return undefined;
    const places = [binary, bundles].map(({ directory }) =>
      diskRoom(directory, limits.reserveBytes, files),
    );
    const free = await Promise.all(places.map(async (place) => await place.free()));
    return 2 ** Math.floor(Math.log2(Math.min(MOST_ROOM, ...free)));
  }

  return async (annotations = {}) => {
    const check = decodeDownloadCheck(annotations);
    const id = check ? downloadCheckId(annotations) : known.id;
    if (id === known.id && clock.monotonic() < until) return known;
    const said = check ? await tryAll(check) : known;
    until = clock.monotonic() + LASTING[said.problem === undefined ? 'possible' : 'impossible'];
    known = defined({ ...said, id, room: await room() });
    return known;
  };
}

/**
 * Returns the size of the payload; 0 if the server does not send it. If a HEAD request fails, the function requests the
 * first byte with GET, because some servers do not support HEAD and a signed URL allows only GET.
 */
async function sizeOf(request: Get): Promise<number> {
  const headers = { ...request.headers, range: 'bytes=0-0' };
  using answer = await httpGet(
    { ...request, method: 'HEAD' },
    AbortSignal.timeout(TIMEOUT_MS),
  ).catch(async () => await httpGet({ ...request, headers }, AbortSignal.timeout(TIMEOUT_MS)));
  const { 'content-range': range = '', 'content-length': length = '0' } = answer.response.headers;
  return Number(/\/(\d+)$/.exec(range)?.[1] ?? length);
}

/** Returns 0 for a file that is missing or unreadable. */
async function sizeOnDisk(path: string): Promise<number> {
  const found = await files.stat(path).catch(() => undefined);
  return found?.size ?? 0;
}
