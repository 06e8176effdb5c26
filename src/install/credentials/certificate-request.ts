/** Makes a key, and the request for its certificate (PKCS #10, RFC 2986). */
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { bits, explicit, integer, oid, sequence, set, utf8 } from './der.ts';

const COMMON_NAME = '2.5.4.3';
const ECDSA_WITH_SHA256 = sequence(oid('1.2.840.10045.4.3.2'));

/** Both in PEM, for a client that Kubernetes shall know as `user`. */
export function requestFor(user: string): { readonly key: string; readonly request: string } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  const subject = sequence(set(sequence(oid(COMMON_NAME), utf8(user))));
  const toBeSigned = sequence(integer(Buffer.from([0])), subject, publicKey, explicit(0));
  const signature = sign('sha256', toBeSigned, privateKey);
  const der = sequence(toBeSigned, ECDSA_WITH_SHA256, bits(signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  const request = `-----BEGIN CERTIFICATE REQUEST-----\n${lines.join('\n')}\n-----END CERTIFICATE REQUEST-----\n`;
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }), request };
}
