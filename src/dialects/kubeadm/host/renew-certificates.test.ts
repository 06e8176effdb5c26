/** Proves that renewed certificates count only once each component has loaded them. */
import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { buildLog } from '../../../../test/support/builders/logs.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { createAuthority, issueServer } from '../../../../tools/controlplane/certs.ts';
import type { Condition, Pod } from '../../../kube/resources.ts';
import { DAY_MS } from '../../../util/clock.ts';
import type { ShellResult } from '../../../util/run-program.ts';
import { renewCertificates } from './renew-certificates.ts';

const clock = new FakeClock();
const NOW = clock.now();
const PKI = '/etc/kubernetes/pki';
const life = (days: number) => ({ notBefore: NOW - 360 * DAY_MS, notAfter: NOW + days * DAY_MS });
const subject = { commonName: 'kubernetes' };
const authority = { subject, ...createAuthority(subject, life(3650)) };

function lineOf(certificate: string, file: string): string {
  const text = new X509Certificate(certificate).raw.toString('base64');
  return `certificate=${text} ${(NOW - 360 * DAY_MS) / 1000} ${file}`;
}

function leafOf(days: number, name = 'apiserver'): string {
  const names = { dns: ['cp1'], addresses: [] };
  return lineOf(issueServer(authority, names, life(days)).certificate, `${PKI}/${name}.crt`);
}

function factsWith(...leaves: readonly string[]): string {
  return [
    'image.kube-apiserver=r/kube-apiserver:v1.36.3',
    'image.etcd=r/etcd:3.6.8-0',
    lineOf(authority.certificate, `${PKI}/ca.crt`),
    `key=${PKI}/ca.key`,
    ...leaves,
  ].join('\n');
}

function podOf(component: string, rollout = 'uid', status: Condition['status'] = 'True'): Pod {
  return {
    metadata: {
      name: `${component}-cp1`,
      labels: { component },
      annotations: { 'upgrade.refit.dev/certificates': rollout },
    },
    spec: { nodeName: 'cp1' },
    status: { conditions: [{ type: 'Ready', status }] },
  };
}

interface Situation {
  readonly pods?: readonly Pod[];
  readonly before?: string;
  readonly after?: string;
  /** The output of curl about the certificate that the API server serves. */
  readonly served?: string;
}

const GOOD = factsWith(leafOf(365));
const END = new Date(NOW + 365 * DAY_MS).toUTCString();

async function renew({
  pods = [podOf('kube-apiserver'), podOf('etcd')],
  before = GOOD,
  after = before,
  served = END,
}: Situation) {
  const scripts: string[] = [];
  const logged: string[] = [];
  const answer = (script: string): string => {
    if (script.startsWith('BODY=')) return '';
    if (script.includes('echo unseen')) return served;
    return scripts.length === 1 ? before : after;
  };
  const on = {
    shells: {
      run: async (_host: unknown, script: string): Promise<ShellResult> => {
        scripts.push(script);
        return await Promise.resolve({ code: 0, stdout: answer(script), stderr: '' });
      },
    },
    host: { name: 'cp1', role: 'controlPlane' },
    parts: ['certificates'],
    members: async () => await Promise.resolve(new Map()),
    node: async () => await Promise.resolve({ metadata: { name: 'cp1' } }),
    pods: async () => await Promise.resolve(pods),
    abort: new AbortController().signal,
    clock,
    log: buildLog(logged, 'warn'),
    rollout: 'uid',
    version: 'v1.36.3',
  } as const;
  const said = await clock.runUntil(
    renewCertificates(on).then(
      () => '',
      (error: unknown) => (error as Error).message,
    ),
  );
  return { said, scripts: scripts.filter((script) => script.startsWith('BODY=')), logged };
}

test('each certificate is renewed, then each component starts anew', async () => {
  const { said, scripts, logged } = await renew({
    before: factsWith(leafOf(5), leafOf(5, 'apiserver-kubelet-client')),
    after: GOOD,
  });
  expect([said, logged]).toEqual(['', []]);
  expect(scripts).toEqual([
    expect.stringContaining(
      `RENEWALS='\\''apiserver apiserver-kubelet-client'\\''\nSTATIC_PODS='\\''kube-apiserver etcd'\\''\n`,
    ),
    expect.stringContaining(`COMPONENT='\\''kube-apiserver'\\''`),
    expect.stringContaining(`COMPONENT='\\''etcd'\\''`),
  ]);
  expect(scripts[1]).toContain(
    `NAME='\\''upgrade.refit.dev/certificates'\\''\nROLLOUT='\\''uid'\\''\n`,
  );
});

test.each<[string, Situation, string]>([
  [
    'a component that the kubelet did not start anew',
    { pods: [podOf('kube-apiserver', 'an earlier one')] },
    'kube-apiserver was not restarted by the kubelet; see journalctl -u kubelet on the host',
  ],
  [
    'a component without a pod',
    { pods: [podOf('kube-apiserver')] },
    'etcd was not restarted by the kubelet; see journalctl -u kubelet on the host',
  ],
  [
    'a component that is not ready',
    { pods: [podOf('kube-apiserver', 'uid', 'False')] },
    'kube-apiserver is not ready; see journalctl -u kubelet on the host',
  ],
  [
    'a certificate that still ends soon',
    { before: factsWith(leafOf(5)), served: 'another' },
    `${PKI}/apiserver.crt ends on 2026-01-06, although it was renewed`,
  ],
  [
    'an API server that still serves the earlier one',
    { served: 'Jan  3 00:00:00 2026 GMT' },
    `the API server does not serve ${PKI}/apiserver.crt; the certificate that it serves ends on: Jan  3 00:00:00 2026 GMT`,
  ],
])('%s is named', async (_name, situation, expected) => {
  expect((await renew(situation)).said).toBe(expected);
});

test('a certificate of another authority is none of kubeadm, nor is what then serves', async () => {
  const { said } = await renew({ served: 'another\n' });
  expect(said).toBe('');
});

test('a host without curl is told: nobody has seen what is served', async () => {
  const { said, logged } = await renew({ served: 'unseen\n' });
  expect(said).toBe('');
  expect(logged).toEqual([expect.stringContaining('no curl on the host')]);
});

test('what is served does not count where kubeadm does not renew it', async () => {
  const { said } = await renew({
    before: factsWith(leafOf(365, 'front-proxy-client')),
    served: 'Jan  3 00:00:00 2026 GMT',
  });
  expect(said).toBe('');
});
