/** Tests when a node that a plan upgraded counts as older than the version of the plan, in each dialect. */
import { expect, test } from 'vitest';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import type { Dialect } from '../engine/contract/dialect.ts';
import type { KubeObject } from '../kube/resources.ts';
import { autopilot } from './autopilot/plan/autopilot-dialect.ts';
import { capi } from './capi/plan/capi-dialect.ts';
import { cattleView } from './cattle/plan/cattle-dialect.ts';
import { kubeadmView } from './kubeadm/plan/kubeadm-dialect.ts';

const planOf = (image?: string): KubeObject & { readonly spec?: unknown } => ({
  metadata: { name: 'plan' },
  ...(image === undefined ? {} : { spec: { upgrade: { image } } }),
});
const isBehind = (
  dialect: unknown,
  kubeletVersion: string,
  version: string,
  image?: string,
): boolean | undefined => {
  const node = { ...buildNode('w1'), status: { nodeInfo: { kubeletVersion } } };
  const stage = { ...buildStage('worker', ['w1']), version };
  return (dialect as Dialect).versions?.isBehind(node, stage, planOf(image));
};

test.each([
  ['k0s', autopilot, 'v1.36.3+k0s', 'v1.37.0+k0s.0', true],
  ['k0s, the same release', autopilot, 'v1.36.3+k0s', 'v1.36.3+k0s.2', false],
  ['kubeadm', kubeadmView, 'v1.36.3', 'v1.37.0', true],
  ['kubeadm, the same', kubeadmView, 'v1.37.0', 'v1.37.0', false],
  ['kubeadm, unreadable', kubeadmView, 'fake', 'v1.37.0', false],
  ['Cluster API', capi, 'v1.36.3', 'v1.37.0', true],
  ['Cluster API, a later one', capi, 'v1.37.1', 'v1.37.0', false],
])('%s', (_name, dialect, runs, version, expected) => {
  expect(isBehind(dialect, runs, version)).toBe(expected);
});

test.each([
  ['k3s', 'rancher/k3s-upgrade', 'v1.36.3+k3s1', 'v1.37.0-k3s1', true],
  ['k3s, the same', 'rancher/k3s-upgrade', 'v1.37.0+k3s1', 'v1.37.0-k3s1', false],
  ['k3s, an older build', 'rancher/k3s-upgrade', 'v1.37.0+k3s1', 'v1.37.0-k3s2', true],
  ['k3s, a pre-release', 'rancher/k3s-upgrade', 'v1.37.0-rc1+k3s1', 'v1.37.0-rc1-k3s1', false],
  ['RKE2 with a dash', 'rancher/rke2-upgrade', 'v1.36.3+rke2r1', 'v1.36.3-rke2r1', false],
  ['RKE2, a build behind', 'rancher/rke2-upgrade', 'v1.36.3+rke2r1', 'v1.36.3-rke2r2', true],
  [
    'RKE2 from another registry',
    'r.example/rke2-upgrade:v1.37.0-rke2r1',
    'v1.36.3+rke2r1',
    'v1.37.0+rke2r1',
    true,
  ],
  [
    'RKE2 with a tag that is no version',
    'r.example/rke2-upgrade:v1',
    'v1.36.3+rke2r1',
    'v1.37.0+rke2r1',
    false,
  ],
  ['an image that may install anything', 'busybox', 'v1.36.3+k3s1', 'v1.37.0', false],
])('Plans of Rancher: %s', (_name, image, runs, version, expected) => {
  expect(isBehind(cattleView, runs, version, image)).toBe(expected);
});
