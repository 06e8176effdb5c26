/** Proves that two plans have one digest exactly if they would do the same. */
import { expect, test } from 'vitest';
import { DEFAULT_POLICY } from '../../engine/policy/rollout-policy.ts';
import { parseManifest } from './manifest.ts';
import { newPlan } from './plan-object.ts';
import { assess, type Survey } from './preflight.ts';
import { parseFacts } from './probe.ts';

const text = `version: v1.36.3
hosts: [{ name: cp1, role: controlPlane }, { name: w1, role: worker }]
binaries: { kubeadm: { path: /a }, kubelet: { path: /b } }`;
const manifest = parseManifest(text, 'cluster.yaml');
const factsOf = (kubeadm = 'v1.36.2', more = ''): Survey['hosts'] =>
  manifest.hosts.map((host) => ({ host, ...parseFacts(`kubeadm=${kubeadm}\nkubelet=v1.36.2\n${more}`) }));
const survey: Survey = {
  manifest,
  hosts: factsOf(),
  nodes: [],
  clusterVersion: 'v1.36.2',
  allowsCgroupV1: false,
  plan: undefined,
  policy: DEFAULT_POLICY,
  drainPreviews: new Map(),
  webhooks: [],
};
const digest = assess(survey).digest;
const edited = (from: string, to: string): Partial<Survey> => ({
  manifest: parseManifest(text.replace(from, to), 'cluster.yaml'),
});

test('it is a hash', () => expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/));

test.each<[string, Partial<Survey>]>([
  ['the same, asked once more', {}],
  ['another key to log in with', edited('role: worker', 'role: worker, identityFile: /k')],
  ['a warning of a host', { hosts: factsOf('v1.36.2', 'warn=little room') }],
])('%s: the same digest', (_, seen) => expect(assess({ ...survey, ...seen }).digest).toBe(digest));

test.each<[string, Partial<Survey>]>([
  ['another binary', edited('/a', '/c')],
  ['another option of kubeadm', edited('binaries', 'kubeadm: { etcdUpgrade: false }\nbinaries')],
  ['another address of a host', edited('name: w1', 'name: w1, address: 10.0.0.9')],
  ['more workers at once', edited('binaries', 'concurrent: 2\nbinaries')],
  ['no drain', { policy: { ...DEFAULT_POLICY, drain: { ...DEFAULT_POLICY.drain, enabled: false } } }],
  ['another version on a host', { hosts: factsOf('v1.36.1') }],
])('%s: another digest', (_, seen) => expect(assess({ ...survey, ...seen }).digest).not.toBe(digest));

test('an upgrade that has begun keeps the digest that it began with', () => {
  const { request } = assess(survey);
  const later = assess({ ...survey, plan: newPlan(request, digest), hosts: factsOf('v1.36.3') });
  expect(later).toMatchObject({ resumes: true, digest });
});
