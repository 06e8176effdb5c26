/**
 * Proves which certificates of a host kubeadm renews, which names kubeadm uses for them, and when a certificate is
 * about to expire.
 */
import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAuthority, issueClient, issueServer } from '../../../../tools/controlplane/certs.ts';
import { type Certificate, certificatesIn, endingSoon } from './certificates.ts';
import { readFacts } from './probe.ts';

const NOW = Date.parse('2026-11-21T00:00:00Z');
const DAY = 86_400_000;
const PKI = '/etc/kubernetes/pki';
const life = (days: number, left: number) => ({
  notBefore: NOW + (left - days) * DAY,
  notAfter: NOW + left * DAY,
});
const AUTHORITY = life(3650, 3000);
const [KUBERNETES, ETCD, OTHER] = ['kubernetes', 'etcd-ca', 'company'].map((commonName) => {
  const subject = { commonName };
  return { subject, ...createAuthority(subject, AUTHORITY) };
}) as [Authority, Authority, Authority];
type Authority = ReturnType<typeof createAuthority> & {
  readonly subject: { readonly commonName: string };
};

const lineOf = (certificate: string, file: string, written = NOW): string =>
  `${new X509Certificate(certificate).raw.toString('base64')} ${written / 1000} ${file}`;
/** Issues a certificate as kubeadm does: it becomes valid at the same time as its authority. */
function leaf(
  by: Authority,
  file: string,
  [days, left]: readonly [number, number] = [365, 20],
): string {
  const { notBefore: written, notAfter } = life(days, left);
  const made = issueServer(
    by,
    { dns: ['cp1'], addresses: [] },
    { notBefore: AUTHORITY.notBefore, notAfter },
  );
  return lineOf(made.certificate, file, written);
}
const AUTHORITIES = [
  lineOf(KUBERNETES.certificate, `${PKI}/ca.crt`),
  lineOf(ETCD.certificate, `${PKI}/etcd/ca.crt`),
];
const KEYS = [`${PKI}/ca.key`, `${PKI}/etcd/ca.key`];
const read = (line: string, keys = KEYS): Certificate | undefined =>
  certificatesIn([...AUTHORITIES, line], keys, []).find(({ isAuthority }) => !isAuthority);

test.each([
  [leaf(KUBERNETES, `${PKI}/apiserver.crt`), 'apiserver'],
  [leaf(ETCD, `${PKI}/apiserver-etcd-client.crt`), 'apiserver-etcd-client'],
  [leaf(ETCD, `${PKI}/etcd/server.crt`), 'etcd-server'],
  [leaf(ETCD, '/srv/pki/etcd/healthcheck-client.crt'), 'etcd-healthcheck-client'],
  [leaf(KUBERNETES, '/etc/kubernetes/super-admin.conf'), 'super-admin.conf'],
])('is called as kubeadm certs renew calls it: %#', (line, renewal) => {
  expect(read(line)).toMatchObject({
    isAuthority: false,
    renewal,
    until: NOW + 20 * DAY,
    soon: NOW - 10 * DAY,
  });
});

test.each([
  ['made by another authority', leaf(OTHER, `${PKI}/apiserver.crt`), KEYS],
  [
    'whose authority has its key elsewhere',
    leaf(KUBERNETES, `${PKI}/apiserver.crt`),
    [`${PKI}/etcd/ca.key`],
  ],
])('%s: kubeadm does not renew it', (_name, line, keys) => {
  expect(read(line, keys)).toMatchObject({ until: NOW + 20 * DAY, renewal: undefined });
});

test('that of the kubelet, wherever it lies: kubeadm does not renew it', () => {
  const line = leaf(KUBERNETES, '/etc/kubernetes/kubelet.conf');
  const [found] = certificatesIn(AUTHORITIES, KEYS, [line]).filter((each) => !each.isAuthority);
  expect(found).toMatchObject({ isOfKubelet: true, renewal: undefined });
});

test.each([
  ['a year, 31 days left', [365, 31], false],
  ['a year, 29 days left', [365, 29], true],
  ['a year, ended', [365, -1], true],
  ['10 days, made just now', [10, 10], false],
  ['29 days, made just now', [29, 29], false],
  ['30 days, 4 left: it was made so', [30, 4], false],
  ['30 days, 2 left', [30, 2], true],
] as const)('its end is near: %s', (_name, days, isNear) => {
  const found = read(leaf(KUBERNETES, `${PKI}/apiserver.crt`, days));
  expect(endingSoon(found ? [found] : [], NOW, false)).toHaveLength(isNear ? 1 : 0);
});

test('of an authority, and of what another program made, the dates count', () => {
  const authority = createAuthority({ commonName: 'kubernetes' }, life(3650, 170)).certificate;
  const { certificate } = issueClient(OTHER, { commonName: 'system:node:cp1' }, life(10, 9));
  const lines = [
    lineOf(authority, `${PKI}/ca.crt`),
    lineOf(certificate, '/var/lib/kubelet/pki/k.pem', NOW - 365 * DAY),
  ];
  const found = endingSoon(certificatesIn(lines, KEYS, []), NOW, false);
  expect(found.map((problem) => problem.found)).toEqual([`${PKI}/ca.crt ends on 2027-05-10`]);
});

test('that of a kubelet names its Node', () => {
  const { certificate } = issueClient(
    KUBERNETES,
    { commonName: 'system:node:w1', organization: 'system:nodes' },
    life(365, 20),
  );
  expect(
    read(lineOf(certificate, '/var/lib/kubelet/pki/kubelet-client-current.pem'))?.nodeName,
  ).toBe('w1');
  expect(read(leaf(KUBERNETES, `${PKI}/apiserver.crt`))?.nodeName).toBeUndefined();
});

test('what is no certificate is left out', () => {
  const { certificate } = issueClient(KUBERNETES, { commonName: 'admin' }, life(365, 20));
  const lines = [
    'nonsense /etc/kubernetes/admin.conf',
    lineOf(certificate, '/etc/kubernetes/scheduler.conf'),
  ];
  expect(certificatesIn(lines, KEYS, []).map(({ file }) => file)).toEqual([
    '/etc/kubernetes/scheduler.conf',
  ]);
});

test.each([
  ['worker', ['/var/lib/kubelet/pki/kubelet-client-current.pem']],
  [
    'controlPlane',
    ['/etc/kubernetes/admin.conf', '/var/lib/kubelet/pki/kubelet-client-current.pem'],
  ],
] as const)('on a %s only certificates count that something there uses', async (role, used) => {
  const { certificate } = issueClient(KUBERNETES, { commonName: 'admin' }, life(365, -1));
  const files = ['/etc/kubernetes/admin.conf', '/var/lib/kubelet/pki/kubelet-client-current.pem'];
  const [ofAdmin, ofKubelet] = files.map((file) => lineOf(certificate, file));
  const stdout = `certificate=${ofAdmin}\nkubeletCertificate=${ofKubelet}\n`;
  const run = async () => await Promise.resolve({ code: 0, stdout, stderr: '' });
  const facts = await readFacts({ run }, { name: 'h', role });
  expect(facts.certificates.map(({ file }) => file)).toEqual(used);
});
