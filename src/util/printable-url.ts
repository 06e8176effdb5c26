/** Prints URLs without secrets, and makes the header that sends a password. */

const HIDDEN = '***';

/**
 * Returns the URL without user, password, query and fragment. From a malformed URL everything that
 * could be a password is removed.
 */
export function printableUrl(url: string): string {
  const end = url.search(/[?#]/);
  const address = end === -1 ? url : url.slice(0, end);
  const rest = url.slice(address.length);
  const isWhole = /^[hH][tT]{2}[pP][sS]?:/.test(url) && URL.canParse(url);
  const shown = isWhole
    ? address.replace(/^([a-zA-Z]+:[/\\]*)[^/\\]*@/, `$1${HIDDEN}@`)
    : withoutBeginning(address);
  return rest.length > 1 ? `${shown}${rest[0]}${HIDDEN}` : `${shown}${rest}`;
}

/**
 * Hides what may be a password in a malformed URL. A password may contain any character, so everything before the last
 * `@` is removed, except the scheme.
 */
function withoutBeginning(address: string): string {
  const at = address.lastIndexOf('@');
  if (at === -1) return address;
  const [scheme = ''] = /^[a-zA-Z][a-zA-Z\d+.-]*:[/\\]+/.exec(address.slice(0, at)) ?? [];
  return `${scheme}${HIDDEN}${address.slice(at)}`;
}

/**
 * Returns the value of the header `Authorization` or `Proxy-Authorization`. It throws a URIError if
 * user or password is malformed.
 */
export function basicAuthorization({ username, password }: URL): string {
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}
