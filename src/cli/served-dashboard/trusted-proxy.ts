/**
 * Reads the token of a viewer from a header that a proxy in front of the dashboard sets. The header contains only a
 * token and no user name, so the API server still decides who the owner of the token is.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { RefitError } from '../../util/errors.ts';
import { ownMember } from '../../util/own-member.ts';
import { isToken } from './gate.ts';

/** The maximum length of a token from a proxy in characters. All headers of a request together must fit into 16 KiB. */
const LONGEST_PROXIED_TOKEN = 12 * 1024;
/** Matches the name of a header (RFC 9110). */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** Matches the names of headers that the server reads for another purpose. */
const RESERVED =
  /^(connection|content-.*|cookie|forwarded|host|origin|sec-fetch-.*|transfer-encoding|x-forwarded-(for|host|proto|user)|x-refit-action)$/i;
/**
 * The minimum length of the prefix of a trusted range in bits. A range with a shorter prefix is a mistake, or it trusts
 * nearly every client.
 */
const SHORTEST = { ipv4: 8, ipv6: 8 };

/** The name of the authentication scheme before a token. */
const SCHEME = /^Bearer /i;

/** The way in which a request identifies the viewer. */
export type Arrival =
  /** The request does not come from a trusted proxy. It has a cookie or its own Authorization header. */
  | { readonly kind: 'direct' }
  | { readonly kind: 'proxied'; readonly token: string }
  | { readonly kind: 'refused'; readonly code: 401 | 403; readonly why: string };

export type ArrivalOf = (request: IncomingMessage) => Arrival;

export interface TrustedProxyOptions {
  /** The name of the header with the token of the viewer. If it is undefined, no header of a proxy is read. */
  readonly tokenHeader?: string | undefined;
  /** The IP addresses and ranges (CIDR) of the proxies whose header is read. */
  readonly trustedProxies?: readonly string[] | undefined;
}

/**
 * Returns a function that returns how a request identifies the viewer. Throws REFIT_USAGE if an option is invalid, or
 * if only one of the two options is set.
 */
export function arrivals({ tokenHeader, trustedProxies = [] }: TrustedProxyOptions): ArrivalOf {
  if (tokenHeader === undefined) {
    if (trustedProxies.length === 0) return () => ({ kind: 'direct' });
    throw new RefitError('REFIT_USAGE', '--ui-trusted-proxy needs --ui-token-header');
  }
  if (!HEADER_NAME.test(tokenHeader) || RESERVED.test(tokenHeader))
    throw new RefitError(
      'REFIT_USAGE',
      `--ui-token-header ${JSON.stringify(tokenHeader)} cannot be the header with the token of a viewer`,
      { hint: 'write the header that the proxy sets, such as X-Forwarded-Access-Token' },
    );
  if (trustedProxies.length === 0)
    throw new RefitError(
      'REFIT_USAGE',
      '--ui-token-header needs --ui-trusted-proxy, because only a proxy may set that header',
      { hint: 'add the address of the proxy, such as --ui-trusted-proxy 10.244.1.7' },
    );
  const trusted = rangesIn(trustedProxies);
  return ({ headersDistinct, socket }) => {
    const values = ownMember(headersDistinct, tokenHeader.toLowerCase()) ?? [];
    if (isAmong(trusted, socket.remoteAddress)) return proxiedBy(tokenHeader, values);
    if (values.length === 0) return { kind: 'direct' };
    const why = `The header ${tokenHeader} is accepted only from the addresses of --ui-trusted-proxy, and ${socket.remoteAddress ?? 'this address'} is not one of them.`;
    return { kind: 'refused', code: 403, why };
  };
}

/**
 * Returns how a request of a trusted proxy identifies the viewer. `values` are the values of the header with the token.
 * A cookie in the request is ignored, because only the proxy signs viewers in.
 */
function proxiedBy(header: string, values: readonly string[]): Arrival {
  const refused = (problem: string): Arrival => ({ kind: 'refused', code: 401, why: problem });
  const [value = '', ...others] = values;
  if (value === '') return refused(`The proxy sent no token in the header ${header}.`);
  // A request with several values is refused. If a proxy added its header and did not replace the header of the client,
  // the client could choose the token.
  if (others.length > 0)
    return refused(
      `The proxy sent the header ${header} ${values.length} times: it must replace the header, not add another.`,
    );
  const isBearer = SCHEME.test(value);
  const token = isBearer ? value.replace(SCHEME, '').trim() : value;
  if (token.length > LONGEST_PROXIED_TOKEN)
    return refused(
      `The token in the header ${header} is longer than ${LONGEST_PROXIED_TOKEN} characters.`,
    );
  if (!isToken(token) || (!isBearer && header.toLowerCase() === 'authorization'))
    return refused(`The header ${header} does not hold one bearer token.`);
  return { kind: 'proxied', token };
}

function rangesIn(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [network = '', bits, ...more] = text.split('/');
    const type = familyOf(network);
    const longest = type === 'ipv4' ? 32 : 128;
    const length = bits === undefined ? longest : Number(bits);
    const isRange = /^\d+$/.test(bits ?? '0') && length <= longest && more.length === 0;
    // Two forms are refused. An address with a zone, such as `fe80::1%eth0`, would never match. A range of IPv4 addresses in the form of
    // IPv6 could be larger than the limit for IPv4 allows.
    const isPlain = !/%|^::ffff:/i.test(network);
    if (type === undefined || !isRange || !isPlain || length < SHORTEST[type])
      throw new RefitError(
        'REFIT_USAGE',
        `--ui-trusted-proxy ${JSON.stringify(text)} is not an IP address, or a range with a prefix of at least ${SHORTEST[type ?? 'ipv4']} bits`,
        { hint: 'write an address such as 10.244.1.7, or a small range such as 10.244.1.0/28' },
      );
    list.addSubnet(network, length, type);
  }
  return list;
}

function isAmong(list: BlockList, address = ''): boolean {
  // A link-local address of IPv6 has the name of the interface after `%`.
  const [plain = ''] = address.split('%');
  const type = familyOf(plain);
  return type !== undefined && list.check(plain, type);
}

function familyOf(address: string): 'ipv4' | 'ipv6' | undefined {
  const family = isIP(address);
  if (family === 0) return undefined;
  return family === 4 ? 'ipv4' : 'ipv6';
}
