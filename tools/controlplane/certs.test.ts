/** Tests that another implementation of X.509 reads the certificates as intended. */
import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAuthority, issueClient, issueServer, validFrom } from './certs.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const SUBJECT = { commonName: 'test-ca' };
const authority = createAuthority(SUBJECT, validFrom(NOW));
const issuer = { subject: SUBJECT, key: authority.key };
const ca = new X509Certificate(authority.certificate);

test('the authority signs itself', () => {
  expect(ca.ca).toBe(true);
  expect(ca.verify(ca.publicKey)).toBe(true);
});

test('a server certificate names its DNS names and addresses, also where the list is long', () => {
  const addresses = [
    '127.0.0.1',
    '10.96.0.1',
    ...Array.from({ length: 200 }, (_, i) => `127.0.1.${i}`),
  ];
  const issued = issueServer(
    issuer,
    { dns: ['localhost', 'kubernetes.default'], addresses },
    validFrom(NOW),
  );
  const certificate = new X509Certificate(issued.certificate);
  expect(certificate.verify(ca.publicKey)).toBe(true);
  expect(certificate.checkIssued(ca)).toBe(true);
  expect(certificate.checkHost('kubernetes.default')).toBe('kubernetes.default');
  expect(certificate.checkHost('kubernetes.example')).toBeUndefined();
  expect(addresses.filter((address) => certificate.checkIP(address) === undefined)).toEqual([]);
  expect(certificate.checkIP('127.0.0.2')).toBeUndefined();
});

test.each([
  ['a user', { commonName: 'refit-viewer' }, 'CN=refit-viewer'],
  [
    'a user in a group',
    { commonName: 'system:node:w1', organization: 'system:nodes' },
    'O=system:nodes\nCN=system:node:w1',
  ],
])('a client certificate carries %s', (_name, subject, text) => {
  const certificate = new X509Certificate(issueClient(issuer, subject, validFrom(NOW)).certificate);
  expect(certificate.subject).toBe(text);
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
  expect(certificate.verify(ca.publicKey)).toBe(true);
});

test('validity is kept to the second', () => {
  const issued = issueClient(issuer, SUBJECT, { notBefore: NOW, notAfter: NOW + 1000 });
  const certificate = new X509Certificate(issued.certificate);
  expect(certificate.validFromDate.getTime()).toBe(NOW);
  expect(certificate.validToDate.getTime()).toBe(NOW + 1000);
});

test('another authority of the same name did not sign it', () => {
  const other = new X509Certificate(createAuthority(SUBJECT, validFrom(NOW)).certificate);
  const certificate = new X509Certificate(issueClient(issuer, SUBJECT, validFrom(NOW)).certificate);
  expect(certificate.verify(other.publicKey)).toBe(false);
});
