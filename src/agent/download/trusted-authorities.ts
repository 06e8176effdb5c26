/** Owns which certificate authorities a download server may have its certificate from. */
import { getCACertificates } from 'node:tls';

let known: string[] | undefined;

/**
 * Those that Node.js brings, and those of the host: the original trusts what the host trusts, so that a mirror of one's
 * own works once its authority is installed there. Read once, and only where somebody asks: it takes a while, and megabytes.
 */
export function trustedAuthorities(): string[] {
  known ??= [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
  return known;
}
