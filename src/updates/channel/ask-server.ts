/** Asks an update server for one document: bounded in size and time, and not sent again when nothing changed. */
import type { OutgoingHttpHeaders } from 'node:http';
import { chunksOf, httpGet } from '../../http/http-get.ts';
import type { Environment } from '../../http/proxy-choice.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';

export interface ServerQuestion {
  readonly url: string;
  /** Sent after every redirect, too. */
  readonly headers?: OutgoingHttpHeaders;
  /** Sent to the host of the URL only. */
  readonly secretHeaders?: OutgoingHttpHeaders;
  /** ETag of the answer that is known already. */
  readonly known?: string | undefined;
}

export interface ServerTools {
  readonly clock: Clock;
  /** Names the proxies. */
  readonly environment: Environment;
  readonly userAgent: string;
  readonly abort: AbortSignal;
}

export interface ServerAnswer {
  /** Undefined: as known. */
  readonly text: string | undefined;
  readonly etag: string | undefined;
}

/** An index has one entry for each platform, so it is small. */
const MAX_BYTES = 1024 * 1024;
/** Head and body together, as for k0s. */
const TIMEOUT_MS = 10_000;

/** Rejects with one sentence that names the host, never with user, password or token. */
export async function askServer(question: ServerQuestion, tools: ServerTools): Promise<ServerAnswer> {
  const { clock, environment, userAgent, abort } = tools;
  const over = new AbortController();
  const late = new Error(`the update server did not finish its answer within ${formatDuration(TIMEOUT_MS)}`);
  const cancel = clock.schedule(TIMEOUT_MS, () => over.abort(late));
  const stop = AbortSignal.any([abort, over.signal]);
  try {
    return await ask(question, environment, userAgent, stop);
  } catch (error) {
    throw over.signal.reason === late ? late : error;
  } finally {
    cancel();
  }
}

async function ask(
  { url, headers, secretHeaders, known }: ServerQuestion,
  environment: Environment,
  userAgent: string,
  abort: AbortSignal,
): Promise<ServerAnswer> {
  const own = { 'user-agent': userAgent, accept: 'application/yaml, */*', 'accept-encoding': 'identity' };
  const conditional = known === undefined ? {} : { 'if-none-match': known };
  const request = {
    url,
    headers: { ...own, ...headers, ...conditional },
    ...(secretHeaders && { secretHeaders }),
    source: 'spec.updateServer',
    environment,
  };
  using answer = await httpGet(request, abort);
  const { response, url: from } = answer;
  const { statusCode = 0, headers: answered } = response;
  if (statusCode === 304 && known !== undefined) return { text: undefined, etag: known };
  if (statusCode !== 200) throw new Error(`${from.host} answered ${statusCode} instead of the index`);
  return { text: await textOf(response, from.host), etag: answered.etag };
}

async function textOf(response: Parameters<typeof chunksOf>[0], host: string): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of chunksOf(response)) {
    parts.push(part);
    length += part.length;
    if (length > MAX_BYTES) throw new Error(`the index of ${host} is larger than 1 MiB`);
  }
  return Buffer.concat(parts).toString('utf8');
}
