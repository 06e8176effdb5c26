/** Makes the certificates of the control plane: one authority, which issues the certificates of servers and clients. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import * as x509 from '@peculiar/asn1-x509';

/** Both in PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** The subject of a certificate. For a client, Kubernetes takes CN as the user and O as the group. */
export interface Subject {
  readonly commonName: string;
  readonly organization?: string;
}

/** Milliseconds since the Unix epoch. */
export interface Validity {
  readonly notBefore: number;
  readonly notAfter: number;
}

const HOUR_MS = 3_600_000;

/** Returns a validity that begins an hour ago, because clocks differ, and that lasts much longer than a test run. */
export function validFrom(now: number): Validity {
  return { notBefore: now - HOUR_MS, notAfter: now + 30 * 24 * HOUR_MS };
}

const ECDSA_WITH_SHA256 = new x509.AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' });
const RSA_WITH_SHA256 = new x509.AlgorithmIdentifier({
  algorithm: '1.2.840.113549.1.1.11',
  // An ASN.1 NULL, which RSA demands.
  parameters: new Uint8Array([0x05, 0x00]).buffer,
});
const SIGNS_CERTIFICATES = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign;

/** `key` is in PEM. */
export function createAuthority(subject: Subject, validity: Validity, key = newKey()): KeyPair {
  const extensions = [
    extension(x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA: true }), 'critical'),
    extension(x509.id_ce_keyUsage, new x509.KeyUsage(SIGNS_CERTIFICATES), 'critical'),
  ];
  return certify({ subject, issuer: subject, signingKey: key, key, validity, extensions });
}

export interface Authority {
  readonly subject: Subject;
  readonly key: string;
}

export function issueServer(
  authority: Authority,
  names: { readonly dns: readonly string[]; readonly addresses: readonly string[] },
  validity: Validity,
): KeyPair {
  const alternatives = new x509.SubjectAlternativeName([
    ...names.dns.map((dNSName) => new x509.GeneralName({ dNSName })),
    ...names.addresses.map((iPAddress) => new x509.GeneralName({ iPAddress })),
  ]);
  const subject = { commonName: names.dns[0] ?? names.addresses[0] ?? 'server' };
  return issue(authority, subject, validity, x509.id_kp_serverAuth, [
    extension(x509.id_ce_subjectAltName, alternatives),
  ]);
}

export function issueClient(authority: Authority, subject: Subject, validity: Validity): KeyPair {
  return issue(authority, subject, validity, x509.id_kp_clientAuth, []);
}

function issue(
  authority: Authority,
  subject: Subject,
  validity: Validity,
  usage: string,
  more: readonly x509.Extension[],
): KeyPair {
  const signsMessages = new x509.KeyUsage(x509.KeyUsageFlags.digitalSignature);
  const extensions = [
    extension(x509.id_ce_keyUsage, signsMessages, 'critical'),
    extension(x509.id_ce_extKeyUsage, new x509.ExtendedKeyUsage([usage])),
    ...more,
  ];
  return certify({
    subject,
    issuer: authority.subject,
    signingKey: authority.key,
    key: newKey(),
    validity,
    extensions,
  });
}

interface Request {
  readonly subject: Subject;
  readonly issuer: Subject;
  /** The private key of the issuer. */
  readonly signingKey: string;
  /** The key that the certificate is for. */
  readonly key: string;
  readonly validity: Validity;
  readonly extensions: readonly x509.Extension[];
}

/** A certificate as in RFC 5280, 4.1. */
function certify({ subject, issuer, signingKey, key, validity, extensions }: Request): KeyPair {
  const signer = createPrivateKey(signingKey);
  const algorithm = signer.asymmetricKeyType === 'rsa' ? RSA_WITH_SHA256 : ECDSA_WITH_SHA256;
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const tbsCertificate = new x509.TBSCertificate({
    version: x509.Version.v3,
    serialNumber: serialNumber(),
    signature: algorithm,
    issuer: nameOf(issuer),
    validity: new x509.Validity({
      notBefore: new Date(validity.notBefore),
      notAfter: new Date(validity.notAfter),
    }),
    subject: nameOf(subject),
    subjectPublicKeyInfo: AsnConvert.parse(publicKey, x509.SubjectPublicKeyInfo),
    extensions: new x509.Extensions([...extensions]),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), signer);
  const certificate = new x509.Certificate({
    tbsCertificate,
    signatureAlgorithm: algorithm,
    signatureValue: bytesOf(signature),
  });
  return { certificate: pem(Buffer.from(AsnConvert.serialize(certificate))), key };
}

function nameOf({ commonName, organization }: Subject): x509.Name {
  const attributes = [
    ...(organization === undefined ? [] : [attribute('2.5.4.10', organization)]),
    attribute('2.5.4.3', commonName),
  ];
  return new x509.Name(attributes.map((each) => new x509.RelativeDistinguishedName([each])));
}

function attribute(type: string, utf8String: string): x509.AttributeTypeAndValue {
  return new x509.AttributeTypeAndValue({ type, value: new x509.AttributeValue({ utf8String }) });
}

function extension(extnID: string, value: unknown, critical?: 'critical'): x509.Extension {
  return new x509.Extension({
    extnID,
    critical: critical === 'critical',
    extnValue: new OctetString(AsnConvert.serialize(value)),
  });
}

/** Positive and without leading zeros, as DER requires. */
function serialNumber(): ArrayBuffer {
  const bytes = randomBytes(16);
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0);
  return bytesOf(bytes);
}

/** Returns a copy, because a Buffer may share its memory with other Buffers. */
function bytesOf(buffer: Buffer): ArrayBuffer {
  return new Uint8Array(buffer).buffer;
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' });
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
