/** Surveys of a small kubeadm cluster before an upgrade. */
import type { HostFacts } from '../../../src/dialects/kubeadm/host/probe.ts';
import { parseManifest } from '../../../src/dialects/kubeadm/plan/manifest.ts';
import type { Request } from '../../../src/dialects/kubeadm/plan/plan-object.ts';
import type { Survey } from '../../../src/dialects/kubeadm/plan/preflight.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { CONTROL_PLANE } from '../../../src/kube/control-plane-label.ts';
import type { Node } from '../../../src/kube/resources.ts';
import { ORDINARY } from './survey.ts';

export const OLD = 'v1.36.2';
export const NEW = 'v1.36.3';

export const REQUEST: Request = {
  version: NEW,
  concurrent: 1,
  certificates: [],
  leader: ['cp1'],
  followers: ['cp2'],
  kubelets: [],
  workers: ['w1'],
};

export const manifest = parseManifest(
  `version: ${NEW}
hosts: [{ name: cp1, role: controlPlane }, { name: cp2, role: controlPlane }, { name: w1, role: worker }]
binaries: { kubeadm: { path: /a }, kubelet: { path: /b } }`,
  'cluster.yaml',
);

export function node(name: string, version = OLD, ready = 'True'): Node {
  return {
    metadata: { name, labels: name.startsWith('cp') ? { [CONTROL_PLANE]: '' } : {} },
    status: {
      nodeInfo: { kubeletVersion: version },
      conditions: [{ type: 'Ready', status: ready as 'True' }],
    },
  };
}

export function facts(name: string, version = OLD, more: Partial<HostFacts> = {}): HostFacts {
  const host = manifest.hosts.find((each) => each.name === name) ?? { name, role: 'worker' };
  const pods = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((pod) => [
    pod,
    version,
  ]);
  const staticPods = host.role === 'controlPlane' ? Object.fromEntries(pods) : {};
  return {
    host,
    kubeadm: version,
    kubelet: version,
    ground: {},
    staticPods,
    missing: [],
    ...SOUND,
    ...more,
  };
}

const SOUND = {
  problems: [],
  busy: [],
  apiPort: undefined,
  certificates: [],
  toRenew: [],
  etcd: undefined,
};

export const NAMES = ['cp1', 'cp2', 'w1'];

export const fresh: Survey = {
  manifest,
  hosts: NAMES.map((name) => facts(name)),
  nodes: NAMES.map((name) => node(name)),
  clusterVersion: OLD,
  ...ORDINARY,
};

export const MINOR = 'v1.37.0';

export const minor: Partial<Survey> = { manifest: { ...manifest, version: MINOR } };

export const undrained: RolloutPolicy = {
  ...DEFAULT_POLICY,
  drain: { ...DEFAULT_POLICY.drain, enabled: false },
};
