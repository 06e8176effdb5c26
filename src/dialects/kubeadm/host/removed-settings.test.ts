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
import { assessHosts } from '../plan/preflight.ts';
import type { HostFacts } from './probe.ts';
import { configuredSettings, type KubeadmDocuments, removedFindings } from './removed-settings.ts';

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
  const host = withFlag('feature-gates', '/etc/default/kubelet', `A=true,${GATE}=true`);
  expect(told(host, 'v1.35.0')).toEqual([
    expect.stringMatching(
      /^hard removed w1: feature gate SizeMemoryBackedVolumes in \/etc\/default\/kubelet: Kubernetes 1\.35 removed it/,
    ),
  ]);
  expect(told(host, 'v1.34.0')).toEqual([]);
});

describe('a feature gate that a version locks', () => {
  const host = (value: string) =>
    withFlag('feature-gates', '/etc/default/kubelet', `${GATE}=${value}`);

  test('is refused with the other value, and passes with its own one', () => {
    expect(told(host('false'), 'v1.34.0')).toEqual([
      `hard removed w1: feature gate ${GATE} in /etc/default/kubelet: Kubernetes 1.34 locks it to true, so the kubelet would not start with false; remove it before the upgrade; no setting allows this`,
    ]);
    expect(told(host('true'), 'v1.34.0')).toEqual([]);
    expect(told(host('1'), 'v1.34.0')).toEqual([]);
  });

  test('is named with the version that locked it, if an earlier one is known', () => {
    const kubelet = { featureGates: { UserNamespacesSupport: false } };
    expect(refused({ kubelet }, 'v1.36.0')).toEqual([
      expect.stringContaining(
        'Kubernetes 1.36 locked it to true, so the kubelet would not start with false',
      ),
    ]);
    expect(refused({ kubelet }, 'v1.35.0')).toEqual([]);
  });
});

const places = (cluster: unknown, kubelet?: unknown): string[] =>
  configuredSettings({ cluster, kubelet }).flatMap(({ kind, name, place, object }) =>
    kind === 'gate' ? `${name} ${place} of ${object}` : [],
  );

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

const refused = (documents: KubeadmDocuments, version: string): string[] =>
  removedFindings({ configured: configuredSettings(documents), hosts: [facts('w1')] }, version, [
    'w1',
  ]).map(({ severity, message }) => `${severity} ${message}`);

test.each(['cloud-provider', 'cloud-config'])(
  'the flag %s of kube-apiserver, which 1.33 removed, is refused in both forms of its extraArgs',
  (name) => {
    const found = `hard flag --${name} in apiServer.extraArgs of ConfigMap kube-system/kubeadm-config: Kubernetes 1.33 removed it, so kube-apiserver would not start (https://github.com/kubernetes/kubernetes/pull/130162); remove it before the upgrade`;
    const list = { apiServer: { extraArgs: [{ name, value: 'external' }] } };
    expect(refused({ cluster: list }, 'v1.33.0')).toEqual([found]);
    const map = { apiServer: { extraArgs: { [name]: 'external' } } };
    expect(refused({ cluster: map }, 'v1.36.3')).toEqual([found]);
    expect(refused({ cluster: map }, 'v1.32.9')).toEqual([]);
    // kube-controller-manager still has these flags.
    expect(refused({ cluster: { controllerManager: map.apiServer } }, 'v1.36.3')).toEqual([]);
  },
);

test('a flag of kube-controller-manager that 1.31 removed is refused, and another component may have a flag of this name', () => {
  const extraArgs = { 'horizontal-pod-autoscaler-downscale-delay': '5m' };
  expect(refused({ cluster: { controllerManager: { extraArgs } } }, 'v1.31.0')).toEqual([
    expect.stringContaining('so kube-controller-manager would not start ('),
  ]);
  expect(refused({ cluster: { controllerManager: { extraArgs } } }, 'v1.30.9')).toEqual([]);
  expect(refused({ cluster: { scheduler: { extraArgs } } }, 'v1.36.3')).toEqual([]);
});

test.each([
  ['EtcdLearnerMode', 'v1.33.0', 'v1.32.9'],
  ['WaitForAllControlPlaneComponents', 'v1.35.0', 'v1.34.9'],
  ['ControlPlaneKubeletLocalMode', 'v1.36.0', 'v1.35.9'],
])(
  'the gate %s of kubeadm itself causes a warning in the ClusterConfiguration from %s on, and passes until %s',
  (gate, version, before) => {
    const cluster = { featureGates: { [gate]: true } };
    expect(refused({ cluster }, version)).toEqual([
      expect.stringMatching(
        `^warn feature gate ${gate} in featureGates of ConfigMap kube-system/kubeadm-config: kubeadm 1\\.\\d\\d removed it, so kubeadm may refuse this configuration \\(`,
      ),
    ]);
    expect(refused({ cluster }, before)).toEqual([]);
    // A component that runs with this gate is another matter: it is a gate of kubeadm alone.
    expect(refused({ kubelet: cluster }, version)).toEqual([]);
  },
);

test('a feature gate that 1.35 removed is refused in the configuration of kube-proxy', () => {
  const kubeProxy = { featureGates: { [GATE]: true } };
  expect(refused({ kubeProxy }, 'v1.35.0')).toEqual([
    expect.stringMatching(
      `^hard feature gate ${GATE} in featureGates of ConfigMap kube-system/kube-proxy: Kubernetes 1\\.35 removed it`,
    ),
  ]);
  expect(refused({ kubeProxy }, 'v1.34.9')).toEqual([]);
});

test('the gate KubeProxyDrainingTerminatingNodes, which 1.33 removed, is refused in the configuration of kube-proxy', () => {
  const kubeProxy = { featureGates: { KubeProxyDrainingTerminatingNodes: true } };
  expect(refused({ kubeProxy }, 'v1.33.0')).toHaveLength(1);
  expect(refused({ kubeProxy }, 'v1.32.9')).toEqual([]);
});

test('the plan refuses them only for the hosts that it upgrades', () => {
  const hosts = [
    facts('cp1'),
    facts('cp2'),
    withFlag('pod-infra-container-image', '/etc/default/kubelet'),
  ];
  const configured = configuredSettings({
    cluster: { scheduler: { extraArgs: { 'feature-gates': `${GATE}=true` } } },
  });
  const removed = (more: object): string[] =>
    assessHosts({ ...fresh, hosts, configured, ...more })
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
