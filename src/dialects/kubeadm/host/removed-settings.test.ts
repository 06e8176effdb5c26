/** Proves that a setting that the target version no longer has refuses an upgrade before any host is touched. */
import { describe, expect, test } from 'vitest';
import {
  facts,
  fresh,
  minor,
  NEW,
  node,
} from '../../../../test/support/kubeadm/upgrade-surveys.ts';
import { describeFinding } from '../../../versions/findings.ts';
import { assess } from '../plan/preflight.ts';
import type { HostFacts } from './probe.ts';
import { configuredGates, removedFindings } from './removed-settings.ts';

const GATE = 'SizeMemoryBackedVolumes';
const told = (host: HostFacts, version: string): string[] =>
  removedFindings({ hosts: [host] }, version, ['w1']).map(
    (each) => `${each.severity} ${each.rule} ${describeFinding(each)}`,
  );
const withFlag = (name: string, file: string, value = '') =>
  facts('w1', NEW, { kubeletFlags: [{ name, file, value }] });

describe('a flag of the kubelet that 1.35 removed', () => {
  const name = 'pod-infra-container-image';
  test.each([
    '/etc/default/kubelet',
    '/etc/sysconfig/kubelet',
    '/etc/systemd/system/kubelet.service.d/20-extra.conf',
  ])('is refused in %s, and the refusal names the change', (file) => {
    expect(told(withFlag(name, file), 'v1.35.0')).toEqual([
      `hard removed w1: flag --${name} in ${file}: Kubernetes 1.35 removed it, so the kubelet would not start (https://github.com/kubernetes/kubernetes/pull/133779); remove it before the upgrade; no setting allows this`,
    ]);
    expect(told(withFlag(name, file), 'v1.36.3')).toHaveLength(1);
    expect(told(withFlag(name, file), 'v1.34.9')).toEqual([]);
  });

  test('passes in the file from which kubeadm removes it', () => {
    expect(told(withFlag(name, '/var/lib/kubelet/kubeadm-flags.env'), 'v1.35.0')).toEqual([]);
  });
});

test('a feature gate that 1.35 removed is refused among the flags of a kubelet', () => {
  const host = withFlag('feature-gates', '/etc/default/kubelet', `A=true,${GATE}=false`);
  expect(told(host, 'v1.35.0')).toEqual([
    expect.stringMatching(
      /^hard removed w1: feature gate SizeMemoryBackedVolumes in \/etc\/default\/kubelet: Kubernetes 1\.35 removed it/,
    ),
  ]);
  expect(told(host, 'v1.34.0')).toEqual([]);
});

const places = (cluster: unknown, kubelet?: unknown): string[] =>
  configuredGates(cluster, kubelet).map(({ name, place }) => `${name} ${place}`);

test('feature gates are read from both forms of extraArgs, and from the configuration of kubelets', () => {
  const value = `${GATE}=true, Other=false`;
  const of = (component: string) =>
    `${component}.extraArgs of ConfigMap kube-system/kubeadm-config`;
  expect(
    places(
      {
        apiServer: { extraArgs: { 'feature-gates': value, 'audit-log-path': '-' } },
        controllerManager: {
          extraArgs: [
            { name: 'feature-gates', value },
            { name: 'v', value: '2' },
          ],
        },
        scheduler: {},
      },
      { featureGates: { [GATE]: true } },
    ),
  ).toEqual([
    `${GATE} ${of('apiServer')}`,
    `Other ${of('apiServer')}`,
    `${GATE} ${of('controllerManager')}`,
    `Other ${of('controllerManager')}`,
    `${GATE} featureGates of ConfigMap kube-system/kubelet-config`,
  ]);
});

test.each([
  undefined,
  null,
  'text',
  [],
  { apiServer: { extraArgs: [null, 1, { name: 'feature-gates' }] } },
])('a configuration without gates has none: %j', (configuration) => {
  expect(places(configuration, configuration)).toEqual([]);
});

test('the plan refuses them only for the hosts that it upgrades', () => {
  const hosts = [
    facts('cp1'),
    facts('cp2'),
    withFlag('pod-infra-container-image', '/etc/default/kubelet'),
  ];
  const gates = configuredGates(
    { scheduler: { extraArgs: { 'feature-gates': `${GATE}=true` } } },
    {},
  );
  const removed = (more: object): string[] =>
    assess({ ...fresh, hosts, gates, ...more })
      .findings.filter(({ rule }) => rule === 'removed')
      .map(({ message }) => message.split(': Kubernetes')[0] ?? '');
  const inCluster = `feature gate ${GATE} in scheduler.extraArgs of ConfigMap kube-system/kubeadm-config`;
  // The worker has the target version, so nothing restarts there.
  const nodes = [node('cp1'), node('cp2'), node('w1', NEW)];
  expect(removed({ nodes })).toEqual([inCluster]);
  expect(removed(minor)).toEqual([
    inCluster,
    'w1: flag --pod-infra-container-image in /etc/default/kubelet',
  ]);
});
