/** Asks an update server or a channel: bounded in size and time, through proxies, and not answered in full when nothing changed. */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { chunksOf, type Get, getOnce, httpGet } from '../../http/http-get.ts';
import type { Environment } from '../../http/proxy-choice.ts';
import { textIn } from '../../util/bounded-file.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';

export interface ServerQuestion extends Pick<Get, 'url' | 'secretHeaders'> {
  /** Sent after every redirect, too. */
  readonly headers?: OutgoingHttpHeaders;
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

/** An index has one entry for each platform, so it is small. The parser of YAML blocks this process for as long as it reads. */
const MAX_BYTES = 64 * 1024;
/** Head and body together, as for k0s. */
const TIMEOUT_MS = 10_000;

/** Follows redirects; no text: as known. Rejects with one sentence that names the host, never with user, password or token. */
export async function askServer(question: ServerQuestion, tools: ServerTools) {
  const { url, secretHeaders, known } = question;
  const headers = {
    accept: 'application/yaml, */*',
    'accept-encoding': 'identity',
    ...headersOf(question, tools),
  };
  const more = {
    ...(secretHeaders && { secretHeaders }),
    source: 'spec.updateServer',
    environment: tools.environment,
  };
  return await inTime(tools, async (abort) => {
    using answer = await httpGet({ url, headers, ...more }, abort);
    const { response, url: from } = answer;
    const { statusCode = 0, headers: answered } = response;
    if (statusCode === 304 && known !== undefined) return { text: undefined, etag: known };
    if (statusCode !== 200)
      throw new Error(`${from.host} answered ${statusCode} instead of the index`);
    const text = await textIn(
      chunksOf(response),
      MAX_BYTES,
      `the index of ${from.host} is larger than 64 KiB`,
    );
    return { text, etag: answered.etag };
  });
}

/** Where a redirect leads is the answer: none is followed, and no body is read. */
export async function askHead(
  question: ServerQuestion,
  tools: ServerTools,
): Promise<IncomingMessage> {
  const request = { headers: headersOf(question, tools), environment: tools.environment };
  const response = await inTime(
    tools,
    async (abort) => await getOnce(new URL(question.url), request, abort),
  );
  response.destroy();
  return response;
}

function headersOf(
  { headers, known }: ServerQuestion,
  { userAgent }: ServerTools,
): OutgoingHttpHeaders {
  return {
    'user-agent': userAgent,
    ...headers,
    ...(known !== undefined && { 'if-none-match': known }),
  };
}

async function inTime<T>(
  { clock, abort }: ServerTools,
  ask: (abort: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const late = new Error(
    `the update server did not finish its answer within ${formatDuration(TIMEOUT_MS)}`,
  );
  const cancel = clock.schedule(TIMEOUT_MS, () => over.abort(late));
  try {
    return await ask(AbortSignal.any([abort, over.signal]));
  } catch (error) {
    throw over.signal.reason === late ? late : error;
  } finally {
    cancel();
  }
}
