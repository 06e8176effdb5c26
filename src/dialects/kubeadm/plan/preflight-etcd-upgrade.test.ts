/** Proves that the versions of etcd members are checked only if kubeadm upgrades etcd. */
import { expect, test } from 'vitest';
import { ORDINARY } from '../../../../test/support/kubeadm/survey.ts';
import { parseManifest } from './manifest.ts';
import { assessHosts } from './preflight.ts';

const OLD = 'v1.36.2';
const facts = {
  kubeadm: OLD,
  kubelet: OLD,
  ground: {},
  problems: [],
  busy: [],
  apiPort: undefined,
};

function findingsOf(
  etcd: string,
  version: string,
  options = '',
  leaves: readonly string[] = [],
): string[] {
  const manifest = parseManifest(
    `version: ${version}\n${options}\nhosts: [{ name: cp1, role: controlPlane }]
binaries: { kubeadm: { path: /a }, kubelet: { path: /b } }`,
    'cluster.yaml',
  );
  const staticPods = {
    'kube-apiserver': OLD,
    'kube-controller-manager': OLD,
    'kube-scheduler': OLD,
    etcd,
  };
  const own = { ...facts, leaves, staticPods, missing: [], certificates: [], etcd: undefined };
  const hosts = manifest.hosts.map((host) => ({ ...own, host }));
  const { findings } = assessHosts({
    manifest,
    hosts,
    nodes: [],
    clusterVersion: OLD,
    ...ORDINARY,
  });
  return findings.flatMap(({ rule, severity, message }) =>
    rule === 'etcd' ? [`${severity} ${message}`] : [],
  );
}

test.each([
  ['', ['hard upgrade of etcd from 3.5.15-0 to 3.6: every member must be at 3.5.20 or later']],
  ['kubeadm: { etcdUpgrade: false }', []],
  [
    'kubeadm: { etcdUpgrade: true }',
    ['hard upgrade of etcd from 3.5.15-0 to 3.6: every member must be at 3.5.20 or later'],
  ],
])('a member that may not go to 3.6, with %j in the manifest', (options, found) => {
  expect(findingsOf('3.5.15-0', 'v1.36.3', options)).toEqual(found);
});

test.each([
  ['apply:etcdUpgrade:', []],
  [
    'node:etcdUpgrade:',
    ['hard upgrade of etcd from 3.5.15-0 to 3.6: every member must be at 3.5.20 or later'],
  ],
])(
  'a member that may not go to 3.6, on the leader with %s off in its UpgradeConfiguration',
  (leaves, found) => {
    expect(
      findingsOf('3.5.15-0', 'v1.36.3', 'kubeadm: { config: /etc/upgrade.yaml }', [leaves]),
    ).toEqual(found);
  },
);

test.each([
  ['3.6.8-0', 'v1.36.3', []],
  // An interrupted upgrade to v1.37 leaves etcd at this version. An upgrade to any later patch release can find etcd at
  // this version.
  ['3.7.0-0', 'v1.37.1', []],
  // A user installed this version of etcd. kubeadm does not change an etcd that is newer than its own version.
  ['3.7.0-0', 'v1.36.3', []],
  ['3.8.0-0', 'v1.37.1', []],
  ['3.6.11-0', 'v1.37.1', []],
  [
    '3.6.10-0',
    'v1.37.1',
    ['warn upgrade of etcd from 3.6.10-0 to 3.7: 3.6.11 or later is advised'],
  ],
  [
    '3.5.26-0',
    'v1.37.1',
    ['hard upgrade of etcd from 3.5.26-0 to 3.7: upgrade one minor version at a time'],
  ],
])('a member at %s and kubeadm %s', (etcd, version, found) => {
  expect(findingsOf(etcd, version)).toEqual(found);
});
