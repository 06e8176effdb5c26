/**
 * The address of a file that each host already keeps. A Plan must have an address for each file. This address is in
 * `.invalid`, a domain that never exists (RFC 6761), so no server can answer it with another file.
 */

const HOST = 'kept-by-each-host.refit.invalid';

/** Returns the address that a Plan has for the kept binary of the version. */
export function keptFileUrl(version: string): string {
  return `https://${HOST}/${encodeURIComponent(version)}`;
}

/** Returns true if the address stands for a kept binary, so that nothing can be downloaded from it. */
export function isKeptFileUrl(url: string): boolean {
  return URL.canParse(url) && new URL(url).hostname === HOST;
}
