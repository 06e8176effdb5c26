/** Checks whether a caller may call the hooks. All callers have a certificate of the managers' CA. */
import type { TLSSocket } from 'node:tls';
import { scalarText } from '../../../util/scalar-text.ts';

/**
 * Returns the reason why this caller is refused; undefined if it may call the hooks. Without `names`, every caller with
 * a certificate of the CA may call.
 */
export function callerRefusal(
  socket: TLSSocket,
  names: readonly string[] | undefined,
): string | undefined {
  if (names === undefined) return undefined;
  const subject: unknown = socket.getPeerCertificate().subject?.CN;
  // OpenSSL compares the names. A comparison of texts is not safe, because the text of one name could look like several
  // names.
  const certificate = socket.getPeerX509Certificate();
  const isNamed = names.some(
    (name) =>
      subject === name ||
      certificate?.checkHost(name, { subject: 'never', wildcards: false }) !== undefined,
  );
  return isNamed
    ? undefined
    : `the certificate of "${scalarText(subject)}" has none of the names of --client-name: ${names.join(', ')}`;
}
