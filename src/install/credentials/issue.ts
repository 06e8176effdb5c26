/**
 * Gets a client certificate from the cluster, with a CertificateSigningRequest that the command
 * approves itself.
 */
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { CertificationRequest, CertificationRequestInfo } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import * as x509 from '@peculiar/asn1-x509';
import type { Reading } from '../../kube/client.ts';
import { approved, signingRequests } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import { type Clock, rfc3339, sleep } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';

/** A certificate and its private key, both in PEM. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** Milliseconds to wait. The controller manager signs within moments, or not at all. */
const PATIENCE_MS = 30_000;
const POLL_MS = 200;

export type IssueParts = Reading & { readonly clock: Clock };

/**
 * Resolves with a certificate for `user`, and deletes the request. The signer may choose a shorter
 * validity than `seconds`. It rejects with REFIT_INSTALL if the cluster does not sign.
 */
export async function issueCertificate(
  user: string,
  seconds: number,
  parts: IssueParts,
): Promise<ClientCertificate> {
  const { client, clock, abort } = parts;
  const { key, request } = requestFor(user);
  const name = `refit-${randomUUID()}`;
  const spec = {
    request: Buffer.from(request).toString('base64'),
    signerName: 'kubernetes.io/kube-apiserver-client',
    expirationSeconds: seconds,
    usages: ['client auth', 'digital signature'],
  };
  const created = await client.create(signingRequests, { metadata: { name }, spec }, { abort });
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
    throw new RefitError(
      'REFIT_INSTALL',
      `the cluster did not sign certificatesigningrequest ${name}: ${why}`,
    );
  }
}

/** Object identifiers (RFC 5280, RFC 5758). */
const COMMON_NAME = '2.5.4.3';
const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';

/**
 * Returns a new key and a request for its certificate (PKCS #10, RFC 2986), both in PEM. Kubernetes
 * will know the client as `user`.
 */
function requestFor(user: string): { readonly key: string; readonly request: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const value = new x509.AttributeValue({ utf8String: user });
  const name = new x509.RelativeDistinguishedName([
    new x509.AttributeTypeAndValue({ type: COMMON_NAME, value }),
  ]);
  const certificationRequestInfo = new CertificationRequestInfo({
    subject: new x509.Name([name]),
    subjectPKInfo: AsnConvert.parse(
      publicKey.export({ type: 'spki', format: 'der' }),
      x509.SubjectPublicKeyInfo,
    ),
  });
  const signature = sign(
    'sha256',
    Buffer.from(AsnConvert.serialize(certificationRequestInfo)),
    privateKey,
  );
  const signatureAlgorithm = new x509.AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const whole = {
    certificationRequestInfo,
    signatureAlgorithm,
    signature: new Uint8Array(signature).buffer,
  };
  const der = Buffer.from(AsnConvert.serialize(new CertificationRequest(whole)));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  const request = `-----BEGIN CERTIFICATE REQUEST-----\n${lines.join('\n')}\n-----END CERTIFICATE REQUEST-----\n`;
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }), request };
}
