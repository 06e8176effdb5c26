/** URLs with secrets: how to print one, and how to send a password. */

const HIDDEN = '***';

/** The URL without user, password, query and fragment. A malformed one loses all that could be a password. */
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

/** In a malformed URL a password may contain any character: only the scheme stays of what stands before the last `@`. */
function withoutBeginning(address: string): string {
  const at = address.lastIndexOf('@');
  if (at === -1) return address;
  const [scheme = ''] = /^[a-zA-Z][a-zA-Z\d+.-]*:[/\\]+/.exec(address.slice(0, at)) ?? [];
  return `${scheme}${HIDDEN}${address.slice(at)}`;
}

export function basicAuthorization({ username, password }: URL): string {
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}
