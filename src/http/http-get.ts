/**
 * Sends one request over HTTP or HTTPS. Follows redirects, and does not retry. The type of the error shows whether a
 * retry can help.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Clock } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import { http } from '../util/http.ts';
import { type Environment, proxyFor } from './proxy-choice.ts';
import { get, ProxyRefusal, type Route } from './route.ts';

/** A retry may succeed after this error. Every other error is final. */
export class TransientError extends Error {
  override readonly name = 'TransientError';
}

/** The server refused the request with a status after which a retry cannot help. */
export class AnswerRefusal extends Error {
  override readonly name = 'AnswerRefusal';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The most redirects of one request. Go's HTTP client, which the autopilot of k0s uses, has the same limit. */
const MAX_REDIRECTS = 10;
const ANSWERS = [200, 206, 304, 416];
/**
 * The codes for timeout, too early, and too many requests. A retry may help after them, and after
 * every code from 500 on.
 */
const TRANSIENT = [408, 425, 429];
/** Matches the codes of a bad certificate, which a retry does not change. */
const CERTIFICATE = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT)/;

/** An answer whose body can be read. Disposing of the answer ends the body, whether the body was read or not. */
export interface Answer extends Disposable {
  readonly response: IncomingMessage;
  readonly url: URL;
}

export interface Get extends Pick<Route, 'headers'> {
  readonly method?: 'HEAD' | undefined;
  readonly url: string;
  /**
   * A text for error messages. It names the setting that requires https, and the setting that removes this requirement.
   * If it is absent, plain http is allowed.
   */
  readonly requireHttps?: string | undefined;
  /** If true, a redirect from https to plain http is followed, as the autopilot of k0s does. */
  readonly allowInsecureRedirect?: boolean | undefined;
  /**
   * Returns the reason why no request may be sent to an address; undefined if requests are allowed. It is called with
   * the URL and with the target of each redirect. If it is absent, every address is allowed.
   */
  readonly refuses?: ((address: URL) => string | undefined) | undefined;
  /** Headers that are sent only to the host of the URL. They are not sent after a redirect to another host. */
  readonly secretHeaders?: OutgoingHttpHeaders;
  /** The name, for messages, of the object that contains the URL. The default is `the plan`. */
  readonly source?: string;
  readonly environment: Environment;
}

/** Resolves with the first answer whose code is one of `ANSWERS`. `abort` also ends its body. */
export async function httpGet(request: Get, abort: AbortSignal): Promise<Answer> {
  const { requireHttps, allowInsecureRedirect, headers, secretHeaders } = request;
  let address = new URL(request.url);
  const { origin } = address;
  let from = request.source ?? 'the plan';
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    // Guard redirect-https. A redirect leads to no plain http if https is required.
    if (requireHttps !== undefined && address.protocol === 'http:')
      throw new Error(`${from} leads to plain http at ${address.host}, but ${requireHttps}`);
    // Guard redirect-host. A redirect leads to no other host than the allowed ones.
    const wrongHost = request.refuses?.(address);
    if (wrongHost !== undefined) throw new Error(`the address comes from ${from}: ${wrongHost}`);
    // Guard secret-headers. Another server gets no credentials.
    const told = address.origin === origin ? { ...headers, ...secretHeaders } : headers;
    const response = await getOnce(address, { ...request, headers: told }, abort);
    const { statusCode = 0, headers: answered } = response;
    if (ANSWERS.includes(statusCode))
      return { response, url: address, [Symbol.dispose]: () => void response.destroy() };
    response.destroy();
    if (![301, 302, 303, 307, 308].includes(statusCode)) throw refusal(statusCode, address.host);
    if (answered.location === undefined)
      throw new Error(`${address.host} redirects without a Location header`);
    from = `a redirect of ${address.host}`;
    const next = new URL(answered.location, address);
    // Guard redirect-weaker. A redirect does not remove the encryption.
    const isWeaker = address.protocol === 'https:' && next.protocol === 'http:';
    if (isWeaker && requireHttps === undefined && allowInsecureRedirect !== true) {
      const flag = request.source === undefined ? ' (see --allow-insecure-redirect)' : '';
      throw new Error(`${from} leads from https to plain http at ${next.host}${flag}`);
    }
    address = next;
  }
  throw new Error(`more than ${MAX_REDIRECTS} redirects`);
}

/** Yields the chunks of the body. It throws a TransientError if the body breaks off. */
export async function* chunksOf(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) yield chunk as Buffer;
  } catch (error) {
    throw new TransientError('the download was interrupted', { cause: error });
  }
}

/** Resolves with the answer, which may be a redirect or have an error status. */
export async function getOnce(
  address: URL,
  asked: Pick<Get, 'environment'> & Pick<Route, 'headers' | 'method' | 'body' | 'authority'>,
  abort: AbortSignal,
) {
  const { headers, method, body, authority, environment } = asked;
  const { protocol, host } = address;
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new Error(`cannot download from ${protocol} URLs, only from http: and https:`);
  const proxy = proxyFor(address, environment);
  try {
    return await get({ address, headers, method, body, authority, proxy }, abort);
  } catch (error) {
    if (error instanceof ProxyRefusal)
      throw refusal(error.status, `the proxy ${proxy?.host}, asked for ${host},`);
    const message =
      proxy === undefined
        ? `no answer from ${host}`
        : `no answer from ${host} through the proxy ${proxy.host}`;
    // Node.js throws these errors for a request that cannot be made, for example with a malformed
    // password.
    const isImpossible = error instanceof URIError || error instanceof TypeError;
    throw isImpossible || CERTIFICATE.test((error as NodeJS.ErrnoException).code ?? '')
      ? new Error(message, { cause: error })
      : new TransientError(message, { cause: error });
  }
}

/** Returns the status of an answer with its name. */
export function statusOf({ statusCode = 0 }: IncomingMessage): string {
  const status = `${statusCode} ${http.STATUS_CODES[statusCode] ?? ''}`.trim();
  return statusCode >= 300 && statusCode < 400
    ? `${status}, and redirects are not followed`
    : status;
}

/**
 * Returns the error code that the system gave when a request failed, such as ` (ECONNREFUSED)`; empty if there is none.
 * The text contains no address.
 */
export function codeOf(error: unknown): string {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  const code = cause?.code;
  return typeof code === 'string' && /^[A-Z_0-9]+$/.test(code) ? ` (${code})` : '';
}

function refusal(status: number, who: string): Error {
  const message = `${who} answered ${status} ${http.STATUS_CODES[status] ?? ''}`.trim();
  return isTransient(status) ? new TransientError(message) : new AnswerRefusal(status, message);
}

/** Returns true for the status of an error after which a retry may help. */
export function isTransient(status: number): boolean {
  return status >= 500 || TRANSIENT.includes(status);
}

/** Ends a download that stalls or takes too long. Dispose of it when the download has ended. */
export interface StallGuard extends Disposable {
  /**
   * Aborts with a TransportError after a stall, and with an Error when the time is over. If the parent aborts, aborts
   * with the reason of the parent.
   */
  readonly abort: AbortSignal;
  /** Must be called when data arrives. */
  touch(): void;
}

/**
 * Returns a guard. The guard aborts the download if no data arrives for `stallMs`, or if the download takes longer than
 * `remainingMs`.
 */
export function stallGuard(
  stallMs: number,
  remainingMs: number,
  clock: Clock,
  parent: AbortSignal,
): StallGuard {
  const own = new AbortController();
  const stalled = (): void =>
    own.abort(new TransientError(`received nothing for ${formatDuration(stallMs)}`));
  const tooLong = (): void => own.abort(new Error('the download took too long'));
  const cancelTotal = clock.schedule(Math.max(0, remainingMs), tooLong);
  let cancelStall = clock.schedule(stallMs, stalled);
  return {
    abort: AbortSignal.any([parent, own.signal]),
    touch() {
      cancelStall();
      cancelStall = clock.schedule(stallMs, stalled);
    },
    [Symbol.dispose](): void {
      cancelTotal();
      cancelStall();
    },
  };
}
