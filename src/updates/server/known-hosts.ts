/**
 * Decides which host names clients may use for an update server that has no `--url`. The name becomes part of the URLs
 * in the answers of the server.
 */
import { isIPv4 } from 'node:net';
import { hostname } from 'node:os';

/**
 * Returns true if clients may use this name. `asked` is the header Host, and `reached` is the address of the server to
 * which the client connected. Ports do not matter.
 */
export function isKnownHost(
  asked: string,
  reached: string | undefined,
  given: readonly string[],
): boolean {
  const name = bareName(asked);
  if (name === '') return false;
  if (name === 'localhost' || name === '::1' || (isIPv4(name) && name.startsWith('127.')))
    return true;
  const own = hostname();
  const shortName = own.split('.', 1)[0] ?? own;
  const address = (reached ?? '').replace(/^::ffff:(?=[\d.]+$)/, '');
  return [address, own, shortName, ...given].some((known) => bareName(known) === name);
}

/**
 * Returns the host without port and brackets, in lower case. An IPv6 address gets its shortest form. Returns an empty
 * text if `host` is not a host.
 */
function bareName(host: string): string {
  const isAddress = host.includes(':') && /^[\da-f:]+$/i.test(host) && host.split(':').length > 2;
  const url = URL.parse(`http://${isAddress ? `[${host}]` : host}`);
  return (url?.hostname ?? '').replace(/^\[|\]$/g, '').replace(/\.$/, '');
}
