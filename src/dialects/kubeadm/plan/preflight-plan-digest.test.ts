/** Proves which inputs the digest of a plan covers: the work of the plan, and the state from which it starts. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { parseFacts } from '../host/probe.ts';
import type { Pool } from './machine-pools.ts';
import { parseManifest } from './manifest.ts';
import { newPlan } from './plan-object.ts';
import { assessHosts, type Survey } from './preflight.ts';

const TEXT = `version: v1.36.3
hosts:
- { name: cp1, role: controlPlane, bastion: { address: b } }
- { name: w1, role: worker }
binaries: { kubeadm: { path: /a }, kubelet: { path: /b } }`;

interface Given {
  /** A text in the manifest, and the text that replaces it. */
  readonly edit?: readonly [from: string, to: string];
  readonly kubeadm?: string;
  /** Additional lines in the output of the probe of each host. */
  readonly more?: string;
  readonly uid?: string;
  readonly configuration?: readonly unknown[];
  readonly policy?: Partial<RolloutPolicy>;
  readonly plan?: Survey['plan'];
  /** MachineDeployments that are upgraded as well. */
  readonly pools?: readonly string[];
}

/** Returns a survey that shares no objects with any other survey, as if each run had read its own survey. */
function surveyOf({
  edit = ['', ''],
  kubeadm = 'v1.36.2',
  more = '',
  uid = 'u',
  ...given
}: Given = {}): Survey {
  const manifest = parseManifest(TEXT.replace(...edit), 'cluster.yaml');
  return {
    manifest,
    hosts: manifest.hosts.map((host) => ({
      host,
      ...parseFacts(`kubeadm=${kubeadm}\nkubelet=v1.36.2\n${more}`),
    })),
    nodes: manifest.hosts.map(({ name }) => buildNode(name, { uid })),
    clusterVersion: 'v1.36.2',
    allowsCgroupV1: false,
    configuration: given.configuration ?? [{ ClusterConfiguration: 'a: 1' }],
    plan: given.plan,
    policy: { ...DEFAULT_POLICY, ...given.policy },
    drainPreviews: new Map(),
    webhooks: [],
    pools: given.pools?.map(poolNamed),
    rollsPools: given.pools !== undefined,
    addons: [],
  };
}

function poolNamed(name: string): Pool {
  return { metadata: { name }, spec: { template: { spec: { versions: { kubelet: '1.36.2' } } } } };
}

const digestOf = (given?: Given): string => assessHosts(surveyOf(given)).digest;
const digest = digestOf();

test('it is a hash', () => expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/));

test.each<[string, Given]>([
  ['the same, asked once more', {}],
  ['another key to log in with', { edit: ['role: worker', 'role: worker, identityFile: /k'] }],
  ['another key for a bastion', { edit: ['address: b', 'address: b, identityFile: /k'] }],
  ['a warning of a host', { more: 'warn=little room' }],
  [
    'a static pod that is put back before the upgrade',
    { more: 'image.kube-apiserver=kube-apiserver:v1.36.2' },
  ],
])('%s: the same digest', (_, given) => expect(digestOf(given)).toBe(digest));

const CHANGES: [string, Given][] = [
  ['another binary', { edit: ['/a', '/c'] }],
  [
    'another option of kubeadm',
    { edit: ['binaries', 'kubeadm: { etcdUpgrade: false }\nbinaries'] },
  ],
  ['another address of a host', { edit: ['name: w1', 'name: w1, address: 10.0.0.9'] }],
  [
    'another binary of one host',
    { edit: ['role: worker', 'role: worker, binaries: { kubelet: { path: /c } }'] },
  ],
  ['another bastion', { edit: ['address: b', 'address: c'] }],
  [
    'other options of ssh',
    { edit: ['binaries', 'ssh: { options: { ProxyCommand: nc } }\nbinaries'] },
  ],
  ['no drain', { policy: { drain: { ...DEFAULT_POLICY.drain, enabled: false } } }],
  ['another order of workers', { policy: { order: ['zone'] } }],
  ['MachineDeployments, too', { pools: ['a'] }],
  [
    'a rule of versions less',
    { policy: { allow: new Set(['R12']) } as unknown as Partial<RolloutPolicy> },
  ],
];

test.each<[string, Given]>([
  ...CHANGES,
  ['another version on a host', { kubeadm: 'v1.36.1' }],
  ['a cluster with nodes of the same names', { uid: 'v' }],
  ['another configuration of the cluster', { configuration: [{ ClusterConfiguration: 'a: 2' }] }],
])('%s: another digest', (_, given) => expect(digestOf(given)).not.toBe(digest));

const { request, start } = assessHosts(surveyOf());

test('an upgrade in progress keeps its plan digest when hosts and cluster configuration change', () => {
  const moved = { plan: newPlan(request, start), kubeadm: 'v1.36.3', configuration: [] };
  expect(assessHosts(surveyOf(moved))).toMatchObject({ resumes: true, digest });
});

test.each(CHANGES)('%s, amid the upgrade: another digest', (_, given) => {
  expect(digestOf({ ...given, plan: newPlan(request, start) })).not.toBe(digest);
});

test('a plan object that somebody else wrote has another digest', () => {
  expect(digestOf({ plan: newPlan({ ...request, leader: [], concurrent: 50 }, start) })).not.toBe(
    digest,
  );
});

test('an upgrade that an earlier release has begun has a digest that stays', () => {
  const { data, ...plan } = newPlan(request, start);
  const old = { ...plan, data: { request: data?.['request'] ?? '' } };
  expect(digestOf({ plan: old })).toBe(digestOf({ plan: old, kubeadm: 'v1.36.3' }));
});
