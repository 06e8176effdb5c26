/** Proves that members of etcd are judged only where kubeadm upgrades them. */
import { expect, test } from 'vitest';
import { ORDINARY } from '../../../test/kubeadm/survey.ts';
import { parseManifest } from './manifest.ts';
import { assess } from './preflight.ts';

const OLD = 'v1.36.2';
const etcd = '3.5.15-0';
const staticPods = { 'kube-apiserver': OLD, 'kube-controller-manager': OLD, 'kube-scheduler': OLD, etcd };
const facts = { kubeadm: OLD, kubelet: OLD, ground: {}, staticPods, problems: [], busy: [], apiPort: undefined };

test.each([
  ['', ['etcd 3.5.15-0 to 3.6.4: every member must be at 3.5.20 or later']],
  ['kubeadm: { etcdUpgrade: false }', []],
  ['kubeadm: { etcdUpgrade: true }', ['etcd 3.5.15-0 to 3.6.4: every member must be at 3.5.20 or later']],
])('a member that may not go to 3.6, with %j in the manifest', (options, found) => {
  const manifest = parseManifest(
    `version: v1.36.3\n${options}\nhosts: [{ name: cp1, role: controlPlane }]
binaries: { kubeadm: { path: /a }, kubelet: { path: /b } }`,
    'cluster.yaml',
  );
  const hosts = manifest.hosts.map((host) => ({ ...facts, host, missing: [], certificates: [], etcd: undefined }));
  const { findings } = assess({ manifest, hosts, nodes: [], clusterVersion: OLD, ...ORDINARY });
  expect(findings.flatMap(({ rule, message }) => (rule === 'etcd' ? [message] : []))).toEqual(found);
});
