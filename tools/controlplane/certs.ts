/** Makes the control plane's certificates: one authority, which issues those of servers and clients. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto';
import { bits, element, explicit, integer, oid, sequence, set, utf8 } from './der.ts';

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

/** Valid from an hour ago, because clocks differ, for far longer than a test run. */
export function validFrom(now: number): Validity {
  return { notBefore: now - HOUR_MS, notAfter: now + 30 * 24 * HOUR_MS };
}

const ECDSA_WITH_SHA256 = sequence(oid('1.2.840.10045.4.3.2'));
const RSA_WITH_SHA256 = sequence(oid('1.2.840.113549.1.1.11'), element(0x05, Buffer.alloc(0)));
/** Bits of the extension keyUsage (RFC 5280, 4.2.1.3), first bit first. */
const SIGNS_CERTIFICATES = bits(Buffer.from([0b0000_0110]), 1);
const SIGNS_MESSAGES = bits(Buffer.from([0b1000_0000]), 7);
const SERVER_AUTH = oid('1.3.6.1.5.5.7.3.1');
const CLIENT_AUTH = oid('1.3.6.1.5.5.7.3.2');

/** `key` is in PEM. */
export function createAuthority(subject: Subject, validity: Validity, key = newKey()): KeyPair {
  const extensions = [
    critical('2.5.29.19', sequence(boolean(true))), // basicConstraints: cA
    critical('2.5.29.15', SIGNS_CERTIFICATES),
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
  const alternatives = [
    ...names.dns.map((name) => implicit(2, Buffer.from(name))),
    ...names.addresses.map((address) => implicit(7, Buffer.from(address.split('.').map(Number)))),
  ];
  const subjectAlternativeName = extension('2.5.29.17', sequence(...alternatives));
  const subject = { commonName: names.dns[0] ?? names.addresses[0] ?? 'server' };
  return issue(authority, subject, validity, SERVER_AUTH, [subjectAlternativeName]);
}

export function issueClient(authority: Authority, subject: Subject, validity: Validity): KeyPair {
  return issue(authority, subject, validity, CLIENT_AUTH, []);
}

function issue(
  authority: Authority,
  subject: Subject,
  validity: Validity,
  usage: Buffer,
  more: Buffer[],
): KeyPair {
  const extensions = [
    critical('2.5.29.15', SIGNS_MESSAGES),
    extension('2.5.29.37', sequence(usage)),
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
  /** The issuer's key. */
  readonly signingKey: string;
  /** The key that the certificate is for. */
  readonly key: string;
  readonly validity: Validity;
  readonly extensions: readonly Buffer[];
}

/** A certificate as in RFC 5280, 4.1. */
function certify({ subject, issuer, signingKey, key, validity, extensions }: Request): KeyPair {
  const version3 = explicit(0, integer(Buffer.from([2])));
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' });
  const signer = createPrivateKey(signingKey);
  const algorithm = signer.asymmetricKeyType === 'rsa' ? RSA_WITH_SHA256 : ECDSA_WITH_SHA256;
  const toBeSigned = sequence(
    version3,
    integer(serialNumber()),
    algorithm,
    name(issuer),
    sequence(time(validity.notBefore), time(validity.notAfter)),
    name(subject),
    publicKey,
    explicit(3, sequence(...extensions)),
  );
  const signature = sign('sha256', toBeSigned, signer);
  return { certificate: pem(sequence(toBeSigned, algorithm, bits(signature))), key };
}

function name({ commonName, organization }: Subject): Buffer {
  const attribute = (type: string, value: string): Buffer => set(sequence(oid(type), utf8(value)));
  const parts = organization === undefined ? [] : [attribute('2.5.4.10', organization)];
  return sequence(...parts, attribute('2.5.4.3', commonName));
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), octets(value));
}

function critical(id: string, value: Buffer): Buffer {
  return sequence(oid(id), boolean(true), octets(value));
}

/** Positive and without leading zeros, as DER requires. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0);
  return bytes;
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' });
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0]));
}

function octets(value: Uint8Array): Buffer {
  return element(0x04, value);
}

/** Context-specific and primitive, as in `[2] IMPLICIT IA5String`. */
function implicit(number: number, value: Uint8Array): Buffer {
  return element(0x80 | number, value);
}

/** UTCTime, which X.509 requires before the year 2050. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14);
  return element(0x17, Buffer.from(`${digits}Z`));
}
