/** Answers, before a rollout starts, whether this host could download what its leader names: reachable, and room for it. */
import * as files from 'node:fs/promises';
import { type Get, httpGet } from '../../http/http-get.ts';
import type { Environment } from '../../http/proxy-choice.ts';
import type { DownloadAnswer } from '../../signal/agent-presence.ts';
import type { AgentPolicy, Annotations, SignalCommand } from '../../signal/annotations.ts';
import { decodeDownloadCheck, downloadCheckId } from '../../signal/prefetch.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { printableUrl } from '../../util/printable-url.ts';
import { DiskRoom } from './disk-room.ts';
import { type DownloadLimits, limitsFor, requestFor } from './fetch.ts';

export interface DownloadChecksParts {
  readonly clock: Clock;
  readonly limits: DownloadLimits;
  readonly userAgent: string;
  readonly environment: Environment;
  /** Where the payload of a command goes; undefined while that is not known. */
  readonly directoryFor: (kind: SignalCommand['kind']) => Promise<string | undefined>;
}

/** Milliseconds for which an answer lasts: while a plan waits for its window, servers and disks change. */
const LASTING = { possible: 600_000, impossible: 50_000 };
/** Milliseconds for one request. Both together take less than leaders wait. */
const TIMEOUT_MS = 4_000;

export class DownloadChecks {
  readonly #parts: DownloadChecksParts;
  #known: DownloadAnswer = { id: '' };
  #until = 0;

  constructor(parts: DownloadChecksParts) {
    this.#parts = parts;
  }

  /** Never rejects. Without a check the last answer stays, which saves a write. */
  async answer(annotations: Annotations = {}): Promise<DownloadAnswer> {
    const { clock } = this.#parts;
    const check = decodeDownloadCheck(annotations);
    const id = downloadCheckId(annotations);
    if (check === undefined || (id === this.#known.id && clock.monotonic() < this.#until)) return this.#known;
    const found = await Promise.all(check.commands.map(async (each) => await this.#problemWith(each, check.policy)));
    const problem = found.find((each) => each !== undefined);
    this.#until = clock.monotonic() + LASTING[problem === undefined ? 'possible' : 'impossible'];
    this.#known = { id, ...(problem !== undefined && { problem }) };
    return this.#known;
  }

  async #problemWith({ url, sha256, kind }: SignalCommand, policy: AgentPolicy): Promise<string | undefined> {
    const { userAgent, environment, directoryFor } = this.#parts;
    const limits = limitsFor(this.#parts.limits, policy);
    try {
      const bytes = await sizeOf(requestFor({ url, sha256, userAgent, limits, environment }));
      if (bytes > limits.maxBytes) throw new Error(`it has ${bytes} bytes, and ${limits.maxBytes} is the limit`);
      const directory = await directoryFor(kind);
      if (directory !== undefined) await new DiskRoom(directory, limits.reserveBytes, files).require(bytes);
      return undefined;
    } catch (error) {
      return `${printableUrl(url)}: ${messageOf(error)}`;
    }
  }
}

/** 0 if the server does not say it. Some know no HEAD, and a signed URL is for GET only: then the first byte is requested. */
async function sizeOf(request: Get): Promise<number> {
  const headers = { ...request.headers, range: 'bytes=0-0' };
  using answer = await httpGet({ ...request, method: 'HEAD' }, AbortSignal.timeout(TIMEOUT_MS)).catch(
    async () => await httpGet({ ...request, headers }, AbortSignal.timeout(TIMEOUT_MS)),
  );
  const { 'content-range': range = '', 'content-length': length = '0' } = answer.response.headers;
  return Number(/\/(\d+)$/.exec(range)?.[1] ?? length);
}
