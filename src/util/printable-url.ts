/** URLs with secrets: how to print one, and how to send a password. */

const HIDDEN = '***';

/** The URL without user, password, query and fragment. A malformed one loses all that could be a password. */
export function printableUrl(url: string): string {
  const [, address = '', rest = ''] = /^([^?#]*)(.*)$/s.exec(url) ?? [];
  // In a malformed URL a password may contain any character.
  const isWhole = /^[hH][tT]{2}[pP][sS]?:/.test(url) && URL.canParse(url);
  const userinfo = isWhole
    ? /^([a-zA-Z]+:[/\\]*)[^/\\]*@/
    : /^([a-zA-Z][a-zA-Z\d+.-]*:[/\\]+)?.*@/s;
  const shown = address.replace(
    userinfo,
    (_all, scheme: string | undefined) => `${scheme ?? ''}${HIDDEN}@`,
  );
  return rest.length > 1 ? `${shown}${rest[0]}${HIDDEN}` : `${shown}${rest}`;
}

export function basicAuthorization({ username, password }: URL): string {
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}
