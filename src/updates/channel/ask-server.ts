/**
 * Sends requests to update servers and channels, with limits of size and time, through proxies. The server sends no body if
 * nothing changed.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { chunksOf, type Get, getOnce, httpGet } from '../../http/http-get.ts';
import type { Environment } from '../../http/proxy-choice.ts';
import { textIn } from '../../util/bounded-file.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { within } from '../../util/within.ts';

export interface ServerQuestion extends Pick<Get, 'url' | 'secretHeaders'> {
  /** These headers are sent again after every redirect. */
  readonly headers?: OutgoingHttpHeaders;
  /** The ETag of the answer that the caller already has. */
  readonly known?: string | undefined;
}

export interface ServerTools {
  readonly clock: Clock;
  /** The environment variables that name the proxies. */
  readonly environment: Environment;
  readonly userAgent: string;
  readonly abort: AbortSignal;
}

/**
 * The most bytes of an answer. An index has one entry for each platform, so it is small. The YAML parser blocks this process
 * while it reads.
 */
const MAX_BYTES = 64 * 1024;
/** The time limit in milliseconds for the head and the body together. k0s has the same limit. */
const TIMEOUT_MS = 10_000;

export interface ServerAnswer {
  /** The body; undefined if the server answered that the known body is still current. */
  readonly text: string | undefined;
  readonly etag: string | undefined;
}

/**
 * Sends a GET and follows redirects. The result has no text if the server answers that the `known` answer is still
 * current. Rejects with one sentence that names the host, but never user, password or token.
 */
export async function askServer(
  question: ServerQuestion,
  tools: ServerTools,
): Promise<ServerAnswer> {
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

/**
 * Sends a request and returns the head of the answer. No redirect is followed and no body is read, because the target of the
 * redirect is the answer.
 */
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
  const limit = formatDuration(TIMEOUT_MS);
  const late = new Error(`the update server did not finish its answer within ${limit}`);
  return await within(clock, { ms: TIMEOUT_MS, late, stop: abort }, ask);
}
