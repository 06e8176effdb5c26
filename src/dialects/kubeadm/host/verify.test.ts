/** Proves what the verification reports about a host and about the addons. */
import { describe, expect, test } from 'vitest';
import type { KubeClient } from '../../../kube/client.ts';
import { type Node, type Pod, pods } from '../../../kube/resources.ts';
import { endingSoon } from './certificates.ts';
import type { HostFacts } from './probe.ts';
import {
  absentOf,
  addonCheck,
  controlPlanePods,
  etcdChecks,
  hostChecks,
  problemsOf,
  STATIC_PODS,
  staticPodChecks,
} from './verify.ts';

const VERSION = 'v1.36.3';
const NOW = Date.parse('2026-11-21T00:00:00Z');
const DAY = 86_400_000;
const LATER = { until: NOW + 365 * DAY, soon: NOW + 335 * DAY };
const ENDING = { until: NOW + 5 * DAY, soon: NOW - 25 * DAY };
const AUTHORITY = { file: '/etc/kubernetes/pki/ca.crt', isAuthority: true, ...LATER };
const LEAF = {
  file: '/etc/kubernetes/pki/apiserver.crt',
  isAuthority: false,
  ...LATER,
  renewal: 'apiserver',
};

function facts(more: Partial<HostFacts> = {}): HostFacts {
  const staticPods = {
    ...Object.fromEntries(STATIC_PODS.map((name) => [name, VERSION])),
    etcd: '3.6.8-0',
  };
  return {
    host: { name: 'cp1', role: 'controlPlane' },
    kubeadm: VERSION,
    kubelet: VERSION,
    ground: {},
    problems: [],
    busy: [],
    apiPort: undefined,
    staticPods,
    missing: [],
    certificates: [LEAF, AUTHORITY],
    etcd: undefined,
    ...more,
  };
}

function pod(component: string, tag = VERSION, status: 'True' | 'False' = 'True'): Pod {
  return {
    metadata: { name: `${component}-cp1`, labels: { component } },
    spec: {
      nodeName: 'cp1',
      containers: [{ name: component, image: `r:5000/${component}:${tag}` }],
    },
    status: { conditions: [{ type: 'Ready', status }] },
  };
}

const PODS = [...STATIC_PODS.map((name) => pod(name)), pod('etcd', '3.6.8-0')];
const nodeAt = (kubeletVersion: string): Node => ({
  metadata: { name: 'cp1' },
  status: { nodeInfo: { kubeletVersion } },
});
const without = (name: string, ...instead: readonly Pod[]): Pod[] => [
  ...PODS.filter(({ metadata }) => metadata.labels?.['component'] !== name),
  ...instead,
];
const KUBELET_LOG = 'see journalctl -u kubelet on the host';

test('a control-plane host with all components at the new version has no problems', () => {
  const checks = hostChecks(
    { facts: facts(), node: nodeAt(VERSION), pods: PODS },
    VERSION,
    ['kubeadm', 'kubelet'],
    NOW,
  );
  expect(checks.map(({ component, found }) => `${component} ${found}`)).toEqual([
    ...STATIC_PODS.map((name) => `${name} ${VERSION}`),
    'etcd 3.6.8-0',
    `kubeadm ${VERSION}`,
    `kubelet ${VERSION}`,
    'certificates until 2027-11-21',
  ]);
  expect(problemsOf(checks)).toEqual([]);
});

test.each<[string, Partial<HostFacts>, readonly Pod[], string, readonly string[]]>([
  [
    'a static pod that is not ready',
    {},
    without('kube-scheduler', pod('kube-scheduler', VERSION, 'False')),
    VERSION,
    ['kube-scheduler: its pod is not ready; see kubectl -n kube-system logs kube-scheduler-cp1'],
  ],
  [
    'one that the kubelet has not replaced yet',
    {},
    without('kube-apiserver', pod('kube-apiserver', 'v1.36.2')),
    VERSION,
    [`kube-apiserver: its pod still has v1.36.2; ${KUBELET_LOG}`],
  ],
  [
    'one without a pod',
    {},
    without('etcd'),
    VERSION,
    [`etcd: the API server has no pod of this component; ${KUBELET_LOG}`],
  ],
  [
    'one whose manifest kubeadm left behind',
    { staticPods: { ...facts().staticPods, 'kube-scheduler': 'v1.36.2' } },
    PODS,
    VERSION,
    [`kube-scheduler: v1.36.2; expected ${VERSION}; upgrade the host again`],
  ],
  [
    'a kubelet that did not start',
    {},
    PODS,
    'v1.36.2',
    [`kubelet: the Node reports v1.36.2; ${KUBELET_LOG}`],
  ],
  [
    'a kubeadm that cannot run',
    { kubeadm: undefined },
    PODS,
    VERSION,
    [`kubeadm: no version; expected ${VERSION}; upgrade the host again`],
  ],
  [
    'Refit reports an expired certificate and the command that renews it',
    { certificates: [AUTHORITY, { ...LEAF, until: NOW - DAY, soon: NOW - 31 * DAY }] },
    PODS,
    VERSION,
    [
      'certificates: /etc/kubernetes/pki/apiserver.crt ended on 2026-11-20; run kubeadm certs renew all',
    ],
  ],
])('%s', (_name, more, pods, kubelet, wanted) => {
  const state = { facts: facts(more), node: nodeAt(kubelet), pods };
  expect(problemsOf(hostChecks(state, VERSION, ['kubeadm', 'kubelet'], NOW))).toEqual(wanted);
});

test('before its kubelet is replaced, a host is not asked for it', () => {
  const state = { facts: facts({ kubelet: 'v1.35.1' }), node: nodeAt('v1.35.1'), pods: PODS };
  expect(problemsOf(hostChecks(state, VERSION, ['kubeadm'], NOW))).toEqual([]);
});

test('a worker has no static pods', () => {
  const worker = facts({ host: { name: 'cp1', role: 'worker' }, staticPods: {}, certificates: [] });
  const checks = hostChecks(
    { facts: worker, node: nodeAt(VERSION), pods: [] },
    VERSION,
    ['kubeadm', 'kubelet'],
    NOW,
  );
  expect(checks.map(({ component }) => component)).toEqual(['kubeadm', 'kubelet']);
});

const SEE = 'see kubectl -n kube-system rollout status';
test.each<[string, object, string, string | undefined]>([
  [
    'all pods',
    {
      observedGeneration: 2,
      desiredNumberScheduled: 3,
      updatedNumberScheduled: 3,
      numberAvailable: 3,
    },
    'v1.36.3 on 3 of 3 pods',
    undefined,
  ],
  [
    'an old pod',
    {
      observedGeneration: 2,
      desiredNumberScheduled: 3,
      updatedNumberScheduled: 2,
      numberAvailable: 3,
    },
    'v1.36.3 on 2 of 3 pods',
    `${SEE} daemonset/kube-proxy`,
  ],
  [
    'a change that nobody saw',
    {
      observedGeneration: 1,
      desiredNumberScheduled: 3,
      updatedNumberScheduled: 3,
      numberAvailable: 3,
    },
    'v1.36.3 on 3 of 3 pods',
    `${SEE} daemonset/kube-proxy`,
  ],
  ['no status', {}, 'v1.36.3 on 0 of 0 pods', `${SEE} daemonset/kube-proxy`],
])('kube-proxy with %s', (_name, status, found, cure) => {
  const spec = {
    template: { spec: { containers: [{ name: 'p', image: `r/kube-proxy:${VERSION}` }] } },
  };
  const daemonSet = {
    metadata: { name: 'kube-proxy', generation: 2 },
    spec,
    status: { ...status },
  };
  expect(addonCheck(daemonSet, 'DaemonSet', VERSION)).toEqual({
    component: 'kube-proxy',
    found,
    ...(cure ? { cure } : {}),
  });
  const behind = `expected v1.36.4; run kubeadm upgrade apply phase addon kube-proxy v1.36.4`;
  expect(addonCheck(daemonSet, 'DaemonSet', 'v1.36.4').cure).toBe(behind);
});

test.each<[string, readonly string[], string]>([
  ['is not missed', ['w9'], 'v1.36.3 on 3 of 4 pods (not Ready and not in the manifest: w9)'],
  ['does not stand for another', [], 'v1.36.3 on 3 of 4 pods'],
])('kube-proxy on a Node outside the manifest that is not Ready %s', (_name, absent, found) => {
  const spec = {
    template: { spec: { containers: [{ name: 'p', image: `r/kube-proxy:${VERSION}` }] } },
  };
  const status = { desiredNumberScheduled: 4, updatedNumberScheduled: 3, numberAvailable: 3 };
  const check = addonCheck(
    { metadata: { name: 'kube-proxy' }, spec, status },
    'DaemonSet',
    VERSION,
    absent,
  );
  expect([check.found, check.cure === undefined]).toEqual([found, absent.length > 0]);
});

test('CoreDNS is a Deployment, and has its own version', () => {
  const spec = {
    replicas: 2,
    template: { spec: { containers: [{ name: 'c', image: 'r/coredns:v1.14.1' }] } },
  };
  const deployment = {
    metadata: { name: 'coredns' },
    spec,
    status: { updatedReplicas: 2, availableReplicas: 1 },
  };
  expect(addonCheck(deployment, 'Deployment')).toEqual({
    component: 'coredns',
    found: 'v1.14.1 on 1 of 2 pods',
    cure: `${SEE} deployment/coredns`,
  });
});

test('Refit does not check external etcd, and reports a stacked etcd member that does not answer', () => {
  expect(etcdChecks([facts()])).toEqual([]);
  expect(problemsOf(etcdChecks([facts({ etcd: 'refused' })]))).toEqual([
    'etcd: the member on cp1 does not answer (refused); see kubectl -n kube-system logs etcd-cp1; if the host is gone, replace it as the guide describes',
  ]);
});

test('etcd: a host whose member cannot be asked keeps it; one without a manifest of etcd is told', () => {
  const members = ['10', '11'].map((ID) => ({ ID, name: `cp-${ID}`, isLearner: false }));
  const asked = facts({ etcd: { cluster: '1', id: '10', leader: '10', members, alarms: [] } });
  expect(
    problemsOf(
      etcdChecks([asked, facts({ host: { name: 'cp2', role: 'controlPlane' }, etcd: false })]),
    ),
  ).toEqual([]);
  expect(
    problemsOf(etcdChecks([asked, facts({ host: { name: 'cp2', role: 'controlPlane' } })])),
  ).toEqual([
    'etcd: member cp-11 is on no host of the manifest; add its host, or run etcdctl member remove b',
  ]);
});

test.each<[string, object, boolean, string | undefined]>([
  ['a leaf that kubeadm is about to renew', { ...LEAF, ...ENDING }, true, undefined],
  [
    'a leaf that kubeadm is not to renew',
    { ...LEAF, ...ENDING },
    false,
    'run kubeadm certs renew all',
  ],
  ['a leaf with a year', LEAF, false, undefined],
  [
    'a leaf that kubeadm did not make',
    { ...LEAF, ...ENDING, renewal: undefined },
    true,
    'the key of its CA is not on this host: renew the certificate on the host that has this key',
  ],
  [
    'an authority, whatever kubeadm renews',
    { ...AUTHORITY, ...ENDING },
    true,
    'kubeadm never renews an authority: plan its rotation',
  ],
  [
    'of the kubelet',
    {
      ...LEAF,
      ...ENDING,
      isOfKubelet: true,
      renewal: undefined,
    },
    true,
    `the kubelet does not renew it: ${KUBELET_LOG}`,
  ],
])('a certificate that ends: %s', (_name, certificate, isRenewed, cure) => {
  expect(
    endingSoon([certificate as typeof LEAF], NOW, isRenewed).map((problem) => problem.cure),
  ).toEqual(cure === undefined ? [] : [cure]);
});

test('Nodes that are not Ready, or say nothing of that, need no pod of an addon', () => {
  const withReady = (name: string, status: 'True' | 'False' | 'Unknown'): Node => ({
    metadata: { name },
    status: { conditions: [{ type: 'Ready', status }] },
  });
  const nodes = [
    withReady('w1', 'True'),
    withReady('w2', 'False'),
    withReady('w3', 'Unknown'),
    { metadata: { name: 'w4' } },
  ];
  expect(absentOf(nodes)).toEqual(['w2', 'w3', 'w4']);
});

test('the pods of the control plane are found by their label', async () => {
  const asked: unknown[] = [];
  const listAll = async (resource: unknown, options: unknown) => {
    asked.push([resource, options]);
    return await Promise.resolve({ items: PODS });
  };
  expect(await controlPlanePods({ listAll } as unknown as KubeClient)).toBe(PODS);
  expect(asked).toEqual([
    [pods, { namespace: 'kube-system', labelSelector: 'tier=control-plane' }],
  ]);
});

test('without a version, static pods must have that of their manifests', () => {
  const state = { facts: facts(), node: undefined, pods: PODS };
  expect(problemsOf(staticPodChecks(state))).toEqual([]);
  const older = { ...state, pods: without('kube-scheduler', pod('kube-scheduler', 'v1.35.9')) };
  expect(problemsOf(staticPodChecks(older))).toEqual([
    `kube-scheduler: its pod still has v1.35.9; ${KUBELET_LOG}`,
  ]);
  const bare: Pod = {
    metadata: { name: 'x', labels: { component: 'kube-scheduler' } },
    spec: { nodeName: 'cp1' },
  };
  expect(problemsOf(staticPodChecks({ ...state, pods: without('kube-scheduler', bare) }))).toEqual([
    `kube-scheduler: its pod still has no image; ${KUBELET_LOG}`,
  ]);
});

test('a kubelet of the version whose Node reports none yet is told', () => {
  const node: Node = { metadata: { name: 'cp1' } };
  expect(
    problemsOf(hostChecks({ facts: facts(), node, pods: PODS }, VERSION, ['kubelet'], NOW)),
  ).toEqual([`kubelet: the Node reports no version; ${KUBELET_LOG}`]);
});

test('an addon without an image has no version', () => {
  const { found } = addonCheck({ metadata: { name: 'coredns' } }, 'Deployment');
  expect(found).toBe('no version on 0 of 0 pods');
});

describe('a pod of a component that has other containers, too', () => {
  const audit = { name: 'audit', image: 'r/audit:v0.7.0' };
  const own = { name: 'kube-apiserver', image: `r:5000/kube-apiserver:${VERSION}` };
  const renamed = {
    name: 'server',
    image: `r/kube-apiserver:${VERSION}`,
    command: ['/usr/local/bin/kube-apiserver', '--v=2'],
  };
  test.each([
    ['listed after another container', [audit, own], VERSION],
    ['listed before another container', [own, audit], VERSION],
    ['known by the program that it runs', [audit, renamed], VERSION],
    ['absent', [audit, { ...audit, name: 'b' }], 'its pod still has no image'],
  ])('shows the version of the component that is %s', (_name, containers, found) => {
    const own: Pod = {
      metadata: { name: 'kube-apiserver-cp1', labels: { component: 'kube-apiserver' } },
      spec: { nodeName: 'cp1', containers },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    };
    const checks = staticPodChecks({ facts: facts(), node: undefined, pods: [own] });
    expect(checks.find(({ component }) => component === 'kube-apiserver')?.found).toBe(found);
  });

  test('shows the version of kube-proxy, whichever container is first', () => {
    const containers = [audit, { name: 'kube-proxy', image: `r/kube-proxy:${VERSION}` }];
    const daemonSet = {
      metadata: { name: 'kube-proxy' },
      spec: { template: { spec: { containers } } },
    };
    expect(addonCheck(daemonSet, 'DaemonSet', VERSION).found).toBe(`${VERSION} on 0 of 0 pods`);
  });
});
