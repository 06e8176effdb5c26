/** Checks which of the callers with a certificate of the managers' CA may call the hooks. */
import type { TLSSocket } from 'node:tls';
import { scalarText } from '../../../util/scalar-text.ts';

/**
 * Returns why this caller is refused; undefined if it may call. Without `names`, every certificate of the CA may call.
 */
export function callerRefusal(
  socket: TLSSocket,
  names: readonly string[] | undefined,
): string | undefined {
  if (names === undefined) return undefined;
  const subject: unknown = socket.getPeerCertificate().subject?.CN;
  // The names are compared by OpenSSL and not as text, because the text of one name could look like several names.
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
