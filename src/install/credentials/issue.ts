/** Has the cluster sign a client certificate, by a CertificateSigningRequest that this command approves itself. */
import { createPublicKey, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { approved, signingRequests } from '../../kube/signing-requests.ts';
import { ifFound } from '../../kube/status-error.ts';
import { type Clock, rfc3339, sleep } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import type { ObjectsRun } from '../cluster-objects.ts';

/** Both in PEM. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** The controller manager needs a moment; longer, and it does not sign. */
const PATIENCE_MS = 30_000;
const POLL_MS = 200;

export type IssueParts = Pick<ObjectsRun, 'client' | 'abort'> & { readonly clock: Clock };

/** The request is deleted again. The signer may choose a shorter time than `seconds`. */
export async function issueCertificate(user: string, seconds: number, parts: IssueParts): Promise<ClientCertificate> {
  const { client, clock, abort } = parts;
  const { key, request } = requestFor(user);
  const name = `refit-${randomUUID()}`;
  const created = await client.create(
    signingRequests,
    {
      metadata: { name },
      spec: {
        request: Buffer.from(request).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client',
        expirationSeconds: seconds,
        usages: ['client auth', 'digital signature'],
      },
    },
    { abort },
  );
  try {
    const message = `refit credentials made this request for ${user}`;
    const answer = approved(created, message, rfc3339(clock.now()));
    await client.replace(signingRequests, answer, { subresource: 'approval', abort });
    return { key, certificate: await certificateOf(name, parts) };
  } finally {
    await ifFound(client.delete(signingRequests, name)).catch(() => undefined);
  }
}

async function certificateOf(name: string, { client, clock, abort }: IssueParts): Promise<string> {
  for (const end = clock.monotonic() + PATIENCE_MS; ; await sleep(clock, POLL_MS, abort)) {
    const { status } = await client.get(signingRequests, name, { abort });
    if (status?.certificate) return Buffer.from(status.certificate, 'base64').toString();
    const failed = status?.conditions?.find(({ type }) => type === 'Failed' || type === 'Denied');
    if (failed === undefined && clock.monotonic() < end) continue;
    const why = failed?.message ?? `no certificate after ${PATIENCE_MS / 1000} s`;
    throw new RefitError('REFIT_INSTALL', `the cluster did not sign certificatesigningrequest ${name}: ${why}`);
  }
}

/** One element of DER (ITU-T X.690): tag, length, contents. */
export function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), length(body.length), body]);
}

function length(size: number): Buffer {
  if (size < 0x80) return Buffer.from([size]);
  const bytes: number[] = [];
  for (let rest = size; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export const sequence = (...items: readonly Uint8Array[]): Buffer => element(0x30, ...items);
export const set = (...items: readonly Uint8Array[]): Buffer => element(0x31, ...items);
export const utf8 = (value: string): Buffer => element(0x0c, Buffer.from(value));

/** The last `unused` bits of the last byte are padding. */
export function bits(value: Uint8Array, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), value);
}

/** Object identifiers 2.5.4.3 and 1.2.840.10045.4.3.2, the integer 0, and an empty `[0]`, all in DER. */
const COMMON_NAME = Buffer.from('0603550403', 'hex');
export const ECDSA_WITH_SHA256 = sequence(Buffer.from('06082a8648ce3d040302', 'hex'));
const VERSION = Buffer.from('020100', 'hex');
const NO_ATTRIBUTES = Buffer.from('a000', 'hex');

/** A key and its request (PKCS #10, RFC 2986), both in PEM, for a client that Kubernetes shall know as `user`. */
export function requestFor(user: string): { readonly key: string; readonly request: string } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  const subject = sequence(set(sequence(COMMON_NAME, utf8(user))));
  const toBeSigned = sequence(VERSION, subject, publicKey, NO_ATTRIBUTES);
  const signature = sign('sha256', toBeSigned, privateKey);
  const der = sequence(toBeSigned, ECDSA_WITH_SHA256, bits(signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  const request = `-----BEGIN CERTIFICATE REQUEST-----\n${lines.join('\n')}\n-----END CERTIFICATE REQUEST-----\n`;
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }), request };
}
