/** Decides which requests the served dashboard answers, before it sends a request to the API server. */
import type { IncomingHttpHeaders } from 'node:http';

/** The maximum length of a token in bytes. A longer token would not fit into a cookie. */
export const LONGEST_TOKEN = 3800;
const LOOPBACK = ['localhost', '127.0.0.1', '::1'];
/** Matches a bearer token (RFC 6750). */
const TOKEN = /^[\w.~+/-]+=*$/;

/** Returns whether an address, which is `host:port`, can be reached only from this machine. */
export function isLoopback(address: string): boolean {
  return LOOPBACK.includes(hostIn(address));
}

/** Returns the host of `host:port`, in lower case and without the brackets of IPv6; the port may be missing. */
export function hostIn(text: string): string {
  const [, host = ''] = /^(\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(text) ?? [];
  return host.replaceAll(/[[\]]/g, '').toLowerCase();
}

/**
 * Returns true if the host name of the request is a name of this server. The names of the loopback interface are always
 * accepted, because `kubectl port-forward` needs them. `isKnown` decides about all other names.
 */
export function isOwnName(
  { host = '' }: IncomingHttpHeaders,
  isKnown: (name: string) => boolean,
): boolean {
  const name = hostIn(host);
  return name !== '' && (LOOPBACK.includes(name) || isKnown(name));
}

/**
 * Returns true if a page of this server sent the request. Returns false if a page of another site or of another port
 * sent it.
 */
export function isOfOwnPage(headers: IncomingHttpHeaders): boolean {
  const { host = '', origin } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  return origin === undefined || URL.parse(origin)?.host === host.toLowerCase();
}

/** Returns whether `text` may be a bearer token. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/**
 * Returns the bearer token of a request. The token comes from the Authorization header. If the request has no such
 * header, the token comes from the cookie.
 */
export function tokenIn(
  { authorization, cookie = '' }: IncomingHttpHeaders,
  cookieName: string,
): string | undefined {
  const given =
    authorization === undefined
      ? cookie
          .split('; ')
          .find((pair) => pair.startsWith(`${cookieName}=`))
          ?.slice(cookieName.length + 1)
      : /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  return given !== undefined && isToken(given) ? given : undefined;
}
