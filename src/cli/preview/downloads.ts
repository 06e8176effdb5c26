/** Checks whether the download servers have a plan's files, and how large they are, without fetching them. */
import type { Rollout } from '../../engine/model/recorded.ts';
import { messageOf } from '../../util/errors.ts';

export interface Download {
  /** `<os>-<architecture>`. */
  readonly platform: string;
  readonly version: string;
  readonly url: string;
  readonly reachable: boolean;
  /** Absent if the server does not say it. */
  readonly bytes?: number;
  /** What was found instead. */
  readonly problem?: string;
  /** False if the plan has no hash for it. */
  readonly verified: boolean;
}

interface DownloadParts {
  readonly fetch: typeof globalThis.fetch;
  readonly abort: AbortSignal;
}

/** Milliseconds for one request. */
const TIMEOUT_MS = 5000;

/** Each once; never rejects. */
export async function probeDownloads({ stages }: Rollout, parts: DownloadParts): Promise<readonly Download[]> {
  const wanted = stages.flatMap(({ version, payloads = {} }) =>
    Object.entries(payloads).map(([platform, { url, sha256 }]) => ({
      platform,
      version,
      url,
      verified: sha256 !== undefined,
    })),
  );
  const distinct = new Map(wanted.map((each) => [JSON.stringify(each), each]));
  return await Promise.all(
    [...distinct.values()].map(async (each) => ({ ...each, ...(await probe(each.url, parts)) })),
  );
}

type Found = Pick<Download, 'reachable' | 'bytes' | 'problem'>;

/** Some servers do not support HEAD, or do not give the size with it: then the first byte is requested. */
async function probe(url: string, parts: DownloadParts): Promise<Found> {
  try {
    const head = await ask(url, 'HEAD', parts);
    const size = head.ok ? sizeIn(head.headers.get('content-length')) : undefined;
    return size === undefined ? foundBy(await ask(url, 'GET', parts)) : { reachable: true, bytes: size };
  } catch (error) {
    return { reachable: false, problem: messageOf(error) };
  }
}

async function ask(url: string, method: 'HEAD' | 'GET', { fetch, abort }: DownloadParts): Promise<Response> {
  const headers: Record<string, string> = method === 'GET' ? { Range: 'bytes=0-0' } : {};
  const ending = AbortSignal.any([abort, AbortSignal.timeout(TIMEOUT_MS)]);
  const response = await fetch(url, { method, headers, signal: ending });
  // A server without ranges sends everything.
  await response.body?.cancel();
  return response;
}

function foundBy({ ok, status, headers }: Response): Found {
  if (!ok) return { reachable: false, problem: `answered ${status}` };
  const length = status === 206 ? headers.get('content-range')?.split('/')[1] : headers.get('content-length');
  const bytes = sizeIn(length ?? null);
  return { reachable: true, ...(bytes === undefined ? {} : { bytes }) };
}

function sizeIn(text: string | null): number | undefined {
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
}
