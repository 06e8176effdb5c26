/** Chooses the proxy of a download from the environment, as Go's HTTP client does, which the original uses. */
import { BlockList, isIP } from 'node:net';
import { ifPossible } from '../util/errors.ts';
import { ownMember } from '../util/own-member.ts';

/** Such as `process.env`. Names count in both spellings, capitals first. */
export type Environment = Readonly<Record<string, string | undefined>>;

const PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };
export const portOf = ({ port, protocol }: URL): string =>
  port || (ownMember(PORTS, protocol) ?? '');

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Undefined: no proxy. Throws when the environment names an unusable proxy. */
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
  // Without the value: it may contain a password.
  if (proxy === undefined)
    throw new Error(`${name} is not a proxy URL; use for example http://192.0.2.1:3128`);
  return proxy;
}

function readProxy(text: string): URL | undefined {
  const proxy = new URL(text);
  // A URL keeps a bare %: such credentials cannot be decoded.
  decodeURIComponent(`${proxy.username}:${proxy.password}`);
  return ownMember(PORTS, proxy.protocol) === undefined ? undefined : proxy;
}

function isExempt(address: URL, noProxy: string): boolean {
  const host = withoutBrackets(address.hostname);
  if (host === 'localhost' || matches(LOOPBACK, host)) return true;
  const entries = noProxy.split(',').map((entry) => entry.trim().toLowerCase());
  return entries.some((entry) => exempts(entry, host, portOf(address)));
}

/** An entry is `*`, a subnet, an address or a domain; address and domain may have a port. `host` is in lower case, without brackets. */
function exempts(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  const [network = '', bits] = entry.split('/');
  if (bits !== undefined) return isInSubnet(host, network, Number(bits));
  const [, domain = entry, only = port] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [];
  return only === port && isInDomain(host, withoutBrackets(domain));
}

/** `.example.com` and `*.example.com` match the hosts below; `example.com` also matches itself. */
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

/** An IPv6 address stands in brackets in a URL. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}
