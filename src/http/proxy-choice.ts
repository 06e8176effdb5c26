/** Chooses the proxy of a download from the environment, like Go's HTTP client, which the autopilot of k0s uses. */
import { BlockList, isIP } from 'node:net';
import { ifPossible } from '../util/errors.ts';
import { ownMember } from '../util/own-member.ts';

/**
 * The environment variables, such as `process.env`. Names in capitals have precedence over names in
 * small letters.
 */
export type Environment = Readonly<Record<string, string | undefined>>;

const PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };
/** Returns the port of a URL, even if it is the default port of the protocol. */
export const portOf = ({ port, protocol }: URL): string =>
  port || (ownMember(PORTS, protocol) ?? '');

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * Returns the proxy for an address, or undefined if none is used. It throws if the environment
 * names an unusable proxy.
 */
export function proxyFor(address: URL, environment: Environment): URL | undefined {
  const read = (name: string): string =>
    ownMember(environment, name) || ownMember(environment, name.toLowerCase()) || '';
  const name = address.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const named = read(name);
  if (named === '' || isExempt(address, read('NO_PROXY'))) return undefined;
  if (/^socks/i.test(named))
    throw new Error(
      `${name} names a SOCKS proxy, which is not supported: use an http or https proxy`,
    );
  const proxy = ifPossible(() => readProxy(named.includes('://') ? named : `http://${named}`));
  // The message does not quote the value, because it may contain a password.
  if (proxy === undefined)
    throw new Error(`${name} is not a proxy URL; use for example http://192.0.2.1:3128`);
  return proxy;
}

function readProxy(text: string): URL | undefined {
  const proxy = new URL(text);
  // A percent sign in a URL may be invalid, because it encodes no character. Credentials with such a sign cannot be
  // decoded, and this call throws.
  decodeURIComponent(`${proxy.username}:${proxy.password}`);
  return ownMember(PORTS, proxy.protocol) === undefined ? undefined : proxy;
}

function isExempt(address: URL, noProxy: string): boolean {
  const host = withoutBrackets(address.hostname);
  if (host === 'localhost' || matches(LOOPBACK, host)) return true;
  const entries = noProxy.split(',').map((entry) => entry.trim().toLowerCase());
  return entries.some((entry) => exempts(entry, host, portOf(address)));
}

/**
 * Returns true if an entry of NO_PROXY matches. An entry is `*`, a subnet, an address or a domain.
 * Address and domain may have a port. `host` is in lower case, without brackets.
 */
function exempts(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  const [network = '', bits] = entry.split('/');
  if (bits !== undefined) return isInSubnet(host, network, Number(bits));
  const [, domain = entry, only = port] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
  return only === port && isInDomain(host, withoutBrackets(domain));
}

/**
 * Returns true if the host is in the domain. `.example.com` and `*.example.com` match only hosts
 * below the domain. `example.com` also matches itself.
 */
function isInDomain(host: string, domain: string): boolean {
  const suffix = domain.replace(/^\*?\./, '');
  return suffix !== '' && (host.endsWith(`.${suffix}`) || (suffix === domain && host === domain));
}

function isInSubnet(host: string, network: string, bits: number): boolean {
  const family = isIP(network);
  if (family === 0 || !Number.isInteger(bits) || bits < 0 || bits > (family === 4 ? 32 : 128))
    return false;
  const subnet = new BlockList();
  subnet.addSubnet(network, bits, family === 4 ? 'ipv4' : 'ipv6');
  return matches(subnet, host);
}

function matches(list: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && list.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** Returns the host without brackets, which surround an IPv6 address in a URL. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}
