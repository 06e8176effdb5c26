/** Tests which warnings users get before they confirm an upgrade. */
import { describe, expect, test } from 'vitest';
import {
  facts,
  fresh,
  NAMES,
  NEW,
  node,
  OLD,
  undrained,
} from '../../../../test/support/kubeadm/upgrade-surveys.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import type { Node } from '../../../kube/resources.ts';
import { describeFinding, warn } from '../../../versions/findings.ts';
import { assessHosts, type Survey } from './preflight.ts';

describe('a host with cgroup v1', () => {
  const refusal =
    'hard cgroup w1: the kubelet of 1.36 refuses cgroup v1; failCgroupV1: false in ConfigMap kube-system/kubelet-config allows this';
  const wanted =
    'warn cgroup w1: failCgroupV1: false allows cgroup v1; kubeadm needs ignorePreflightErrors';
  test.each<[string, boolean, string]>([
    ['that no kubelet may run on', false, refusal],
    ['that the ConfigMap allows to kubelets', true, wanted],
  ])('%s', (_name, allowsCgroupV1, line) => {
    const hosts = [facts('cp1'), facts('cp2'), facts('w1', OLD, { ground: { cgroup: 1 } })];
    const { findings } = assessHosts({ ...fresh, allowsCgroupV1, hosts });
    const told = findings.map((each) => `${each.severity} ${each.rule} ${describeFinding(each)}`);
    expect(told).toEqual([expect.stringContaining(line)]);
  });
});

test('what a drain would wait for is told before anybody agrees, and refuses nothing', () => {
  const obstacle = {
    budget: 'default/web',
    pods: ['default/web-1'],
    reason: 'it wants 1 of its 1 pods healthy',
  };
  const refused = {
    pod: 'default/bare',
    reason: 'has no controller, so nothing would create it again',
  } as const;
  const drainPreviews = new Map([
    ['w1', { evictable: 2, obstacles: [obstacle], refused: [refused] }],
    ['elsewhere', { evictable: 1, obstacles: [obstacle], refused: [] }],
  ]);
  const { findings } = assessHosts({ ...fresh, drainPreviews });
  expect(findings.map(({ rule, severity, message }) => `${severity} ${rule} ${message}`)).toEqual([
    'warn drain w1 cannot be drained now: default/bare has no controller, so nothing would create it again; spec.drain.force: true of an UpgradePolicy allows this',
    'warn drain the drain of w1 may not end: PodDisruptionBudget default/web blocks default/web-1: it wants 1 of its 1 pods healthy. Refit cordons the node, and asks for the evictions for at most 1 h (`deadlines.drain`), because an operator may change the budget. After that, Refit uncordons the node, and the plan stops',
  ]);
  const waits = { ...fresh.policy, drain: { ...fresh.policy.drain, waitsForBudgets: true } };
  const waiting = assessHosts({ ...fresh, drainPreviews, policy: waits }).findings;
  expect(waiting.map(({ message }) => message)).toEqual([
    'w1 cannot be drained now: PodDisruptionBudget default/web blocks default/web-1: it wants 1 of its 1 pods healthy; default/bare has no controller, so nothing would create it again; spec.drain.force: true of an UpgradePolicy allows this',
  ]);
});

test.each<[string, Partial<Survey>, string, boolean]>([
  ['is drained', {}, 'w1', true],
  ['is no host of the upgrade', {}, 'w9', false],
  ['is upgraded without a drain', { policy: undrained }, 'w1', false],
])('a webhook whose only node %s', (_, more, only, matters) => {
  const finding = warn('webhook', `only node ${only} answers`);
  const { findings } = assessHosts({ ...fresh, ...more, webhooks: [{ finding, only }] });
  expect(findings.includes(finding)).toBe(matters);
});

test('certificates that nobody renews are told of every host; only those of the operator without one', () => {
  const problems = [warn('certificate', 'it ends'), warn('host', 'its clock is off')];
  const hosts = [facts('cp1', NEW, { problems }), facts('cp2', NEW), facts('w1', NEW)];
  const there = { hosts, nodes: NAMES.map((name) => node(name, NEW)), clusterVersion: NEW };
  const kubeconfig = [warn('certificate', 'yours ends')];
  expect(assessHosts({ ...fresh, ...there, kubeconfig }).findings).toEqual([
    ...kubeconfig,
    warn('certificate', 'cp1: it ends'),
  ]);
});

test('a virtual Node is named, and hides no other finding; a policy lets it count as a host', () => {
  const nodes = [...fresh.nodes, node('aci', 'v1.19.10-vk-azure'), node('w2', 'v1.30.0')];
  const messages = (policy: RolloutPolicy): string[] =>
    assessHosts({ ...fresh, nodes, policy }).findings.map(
      ({ severity, message }) => `${severity} ${message}`,
    );
  const told = messages(DEFAULT_POLICY);
  expect(told).toContain(
    'warn aci is a virtual Node, because it has the kubelet version v1.19.10-vk-azure: Refit checks no version rule for it',
  );
  const refusals = told.filter((each) => each.startsWith('hard'));
  expect(refusals).toHaveLength(2);
  expect(refusals.every((each) => each.includes('kubelet of w2'))).toBe(true);
  const counted = messages({ ...DEFAULT_POLICY, countsVirtual: true });
  expect(
    counted.filter((each) => each.startsWith('hard') && each.includes('aci')).length,
  ).toBeGreaterThan(0);
});

test.each<[string, Node['status']]>([
  ['nothing at all', undefined],
  ['no nodeInfo', {}],
  ['an empty version', { nodeInfo: { kubeletVersion: '' } }],
])('a Node that reports %s is named, and hides no other finding', (_name, status) => {
  const mute: Node = { metadata: { name: 'mute' }, ...(status ? { status } : {}) };
  const nodes = [...fresh.nodes, mute, node('w2', 'v1.30.0')];
  const told = assessHosts({ ...fresh, nodes }).findings.map(
    ({ severity, message }) => `${severity} ${message}`,
  );
  expect(told.filter((each) => each.includes('mute'))).toEqual([
    'warn kubelet of mute reports no version, so no rule of versions is checked for it',
  ]);
  const refusals = told.filter((each) => each.startsWith('hard'));
  expect(refusals).toHaveLength(2);
  expect(refusals.every((each) => each.includes('kubelet of w2'))).toBe(true);
});
