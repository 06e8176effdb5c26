/** Proves which certificates refuse an upgrade, because a component would not work after its next start. */
import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createAuthority, issueServer } from '../../../../tools/controlplane/certs.ts';
import { describeFinding } from '../../../versions/findings.ts';
import type { Certificate } from './certificates.ts';
import { certificateFindings, type StartFacts, trustFindings } from './next-start.ts';

const NOW = Date.parse('2026-11-21T00:00:00Z');
const DAY = 86_400_000;
const ended = (file: string, more: Partial<Certificate> = {}): Certificate => ({
  file,
  isAuthority: false,
  until: NOW - DAY,
  soon: NOW - 31 * DAY,
  ...more,
});
const facts = (
  certificates: readonly Certificate[],
  more: Partial<StartFacts> = {},
): StartFacts => ({
  certificates,
  staticPods: { etcd: '3.6.8-0' },
  ...more,
});
const told = (given: StartFacts, isRenewed = true): string[] =>
  certificateFindings(given, NOW, isRenewed).map(
    (finding) => `${finding.severity} ${finding.rule} ${describeFinding(finding)}`,
  );

test('an ended certificate in the kubeconfig of the kubelet refuses the upgrade, and the refusal says what to do', () => {
  const own = ended('/etc/kubernetes/kubelet.conf', { isOfKubelet: true });
  expect(told(facts([own]))).toEqual([
    'hard certificate /etc/kubernetes/kubelet.conf ended on 2026-11-20, so the kubelet would not start again, and the upgrade restarts it; if /var/lib/kubelet/pki/kubelet-client-current.pem has not ended, let client-certificate and client-key of that kubeconfig name it; otherwise write a new kubeconfig for this Node with kubeadm kubeconfig user --org system:nodes on a control-plane host; no setting allows this',
  ]);
});

test('a kubelet that can ask for a new certificate causes a warning', () => {
  const own = ended('/etc/kubernetes/kubelet.conf', { isOfKubelet: true });
  const bootstrap = '/etc/kubernetes/bootstrap-kubelet.conf';
  expect(told(facts([own], { bootstrap }))).toEqual([
    expect.stringMatching(/^warn certificate \/etc\/kubernetes\/kubelet\.conf ended on/),
  ]);
});

const PKI = '/etc/kubernetes/pki';
describe('an ended certificate of a control-plane host', () => {
  test.each<[string, Certificate, Partial<StartFacts>, boolean, 'hard' | 'warn' | undefined]>([
    [
      'that kubeadm renews now',
      ended(`${PKI}/apiserver.crt`, { renewal: 'apiserver' }),
      {},
      true,
      undefined,
    ],
    [
      'that kubeadm may not renew',
      ended(`${PKI}/apiserver.crt`, { renewal: 'apiserver' }),
      {},
      false,
      'hard',
    ],
    ['that kubeadm cannot renew', ended(`${PKI}/apiserver.crt`), {}, true, 'hard'],
    [
      'in controller-manager.conf',
      ended('/etc/kubernetes/controller-manager.conf'),
      {},
      true,
      'hard',
    ],
    ['in scheduler.conf', ended('/etc/kubernetes/scheduler.conf'), {}, true, 'hard'],
    [
      'with which kubeadm itself works',
      ended('/etc/kubernetes/admin.conf', { renewal: 'admin.conf' }),
      {},
      true,
      'hard',
    ],
    ['that only people use', ended('/etc/kubernetes/super-admin.conf'), {}, true, 'warn'],
    ['of the member of etcd', ended(`${PKI}/etcd/server.crt`), {}, true, 'hard'],
    ['of a client of the member', ended(`${PKI}/apiserver-etcd-client.crt`), {}, true, 'hard'],
    [
      'of etcd that runs elsewhere',
      ended(`${PKI}/etcd/server.crt`),
      { staticPods: {} },
      true,
      'warn',
    ],
    ['of an authority', ended(`${PKI}/ca.crt`, { isAuthority: true }), {}, true, 'hard'],
  ])('%s', (_name, certificate, more, isRenewed, severity) => {
    const found = certificateFindings(facts([certificate], more), NOW, isRenewed);
    expect(found.map((each) => each.severity)).toEqual(severity === undefined ? [] : [severity]);
  });

  test('that ends only soon causes a warning', () => {
    const soon = ended(`${PKI}/apiserver.crt`, { until: NOW + DAY, soon: NOW - DAY });
    expect(told(facts([soon]), false)).toEqual([
      expect.stringMatching(/^warn certificate .* ends on 2026-11-22/),
    ]);
  });
});

describe('the authorities that the kubelet trusts', () => {
  const times = { notBefore: NOW - DAY, notAfter: NOW + DAY };
  const authority = (commonName: string) => {
    const subject = { commonName };
    return { subject, ...createAuthority(subject, times) };
  };
  const own = authority('kubernetes');
  const old = authority('kubernetes');
  const text = (pem: string): string => new X509Certificate(pem).raw.toString('base64');
  const serverBy = (by: typeof own): string =>
    `${text(issueServer(by, { dns: ['cp1'], addresses: [] }, times).certificate)} 1 ${PKI}/apiserver.crt`;
  const ca = `${text(own.certificate)} 1 ${PKI}/ca.crt`;
  test.each<[string, string[], string[], string | undefined]>([
    [
      'include that of the API server',
      [ca, serverBy(own)],
      [old.certificate, own.certificate],
      undefined,
    ],
    ['lack that of the API server', [ca, serverBy(own)], [old.certificate], 'hard'],
    ['differ from that of a worker', [ca], [old.certificate], 'warn'],
    [
      'differ, and another authority signed the API server',
      [ca, serverBy(old)],
      [old.certificate],
      'warn',
    ],
    ['are not known', [ca, serverBy(own)], [], undefined],
    ['are there, and the host has no authority', [], [old.certificate], undefined],
  ])('%s', (_name, lines, trusted, severity) => {
    const found = trustFindings(lines, trusted.map(text));
    expect(found.map((each) => each.severity)).toEqual(severity === undefined ? [] : [severity]);
  });
});
