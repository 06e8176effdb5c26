/** Proves that a Plan which installs K3s or RKE2 breaks no version rule, and that a policy or a variable lifts the rules. */

import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { afterRecord } from '../../../../test/support/builders/cattle-records.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { answered, UNASKED } from '../../../engine/model/asked.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { gather, type Known } from '../../../engine/snapshot/gather.ts';
import { jobs, type Node, nodes, pods, secrets } from '../../../kube/resources.ts';
import type { VersionRule } from '../../../versions/plan-rules.ts';
import { cattle } from './cattle-dialect.ts';
import { type CattleConfig, DEFAULT_JOB_SETTINGS } from './config.ts';
import { INSTALLS_ANNOTATION } from './installed-version.ts';
import { hashLabelOf } from './names.ts';

const NOW = T0 + MINUTE;
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const ETCD = 'node-role.kubernetes.io/etcd';

function nodeAt(name: string, version: string, ...roles: readonly string[]): Node {
  const labels = Object.fromEntries(roles.map((role) => [role, 'true']));
  const node = buildNode(name, { labels: { 'kubernetes.io/hostname': name, ...labels } });
  return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion: version } } };
}
const server = (name: string, version: string): Node => nodeAt(name, version, CONTROL_PLANE, ETCD);

interface Scene {
  readonly spec?: Partial<CattleSpec>;
  readonly annotations?: Record<string, string>;
  readonly nodes: readonly Node[];
  readonly allow?: readonly VersionRule[];
  readonly policy?: Partial<RolloutPolicy>;
  readonly config?: Partial<CattleConfig>;
  readonly known?: Known;
}

interface Outcome {
  readonly started: readonly string[];
  readonly waits: readonly string[];
  readonly told: string | undefined;
  readonly rollsBack: string | undefined;
}

/** Returns what the leader does with a Plan that it sees for the first time. */
function lookAt(scene: Scene): Outcome {
  const { config, known, annotations = {}, nodes: all } = scene;
  const settings = { name: 'c', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
  const dialect = cattle({ ...settings, ...config });
  const draft = buildCattlePlan('p', {
    concurrency: 5,
    version: 'v1.36.3+k3s1',
    ...scene.spec,
    upgrade: { image: 'rancher/k3s-upgrade', ...scene.spec?.upgrade },
  });
  const plan: CattlePlan = { ...draft, metadata: { ...draft.metadata, annotations } };
  const policy = buildPolicy({ prefetch: 'none', allow: new Set(scene.allow), ...scene.policy });
  const worldOf = (seen: readonly Node[]) =>
    buildWorldOf([nodes, seen], [jobs, []], [pods, []], [secrets, []]);
  const first = gather(dialect, plan, worldOf(all), NOW, known);
  const { record } = decide(first, policy, NOW);
  const after = record ? dialect.project(record, plan, NOW) : plan;
  const world = worldOf(afterRecord(dialect, worldOf(all), record, plan, all));
  const snapshot = gather(dialect, after, world, NOW, known);
  const { signals, waits } = decide(snapshot, policy, NOW);
  return {
    started: signals.map(({ target }) => target.name).toSorted(),
    waits: waits.map(({ reason }) => `${reason.code}: ${reason.message}`),
    told: after.status?.conditions?.find(({ type }) => type === 'RefitVersion')?.message,
    rollsBack: snapshot.rollout.rollsBack,
  };
}

const CLUSTER = [server('s1', 'v1.36.3+k3s1'), nodeAt('a1', 'v1.36.3+k3s1')];
const BACK = 'v1.26.3+k3s1';

test('a Plan that goes from v1.36.3 back to v1.26.3 starts no node, and the wait names both versions', () => {
  const { started, waits } = lookAt({ nodes: CLUSTER, spec: { version: BACK } });
  expect(started).toEqual([]);
  expect(waits[0]).toBe(
    'Downgrade: s1 would go from v1.36.3+k3s1 down to v1.26.3+k3s1 (rule Downgrade; versions.allow: [Downgrade] of an UpgradePolicy allows it)',
  );
});

test('versions.allow with Downgrade lets agents go back, but a server only after the newer kubelets', () => {
  const spec = { version: BACK };
  const agents = { ...spec, nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'a1' } } };
  const allow = ['Downgrade'] as const;
  expect(lookAt({ nodes: CLUSTER, spec: agents, allow }).started).toEqual(['a1']);
  const all = lookAt({ nodes: CLUSTER, spec, allow });
  expect(all.started).toEqual([]);
  expect(all.waits[0]).toMatch(
    /^KubeletAhead: a1 would still have a kubelet of v1\.36\.3\+k3s1 when the API server of s1 has v1\.26\.3\+k3s1/,
  );
  expect(lookAt({ nodes: CLUSTER, spec, allow: ['Downgrade', 'KubeletAhead'] }).started).toEqual([
    's1',
  ]);
});

test('a Plan that skips a minor version starts no node unless versions.allow has SkippedMinor', () => {
  const old = [server('s1', 'v1.34.9+k3s1')];
  const { started, waits } = lookAt({ nodes: old });
  expect(started).toEqual([]);
  expect(waits[0]).toMatch(
    /^SkippedMinor: s1 would go from v1\.34\.9\+k3s1 past 1\.35 to v1\.36\.3/,
  );
  expect(lookAt({ nodes: old, allow: ['SkippedMinor'] }).started).toEqual(['s1']);
});

test('agents wait while a server is a minor version older, unless versions.allow has KubeletAhead', () => {
  const behind = [server('s1', 'v1.35.9+k3s1'), nodeAt('a1', 'v1.35.9+k3s1')];
  const spec = { nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'a1' } } };
  const { started, waits } = lookAt({ nodes: behind, spec });
  expect(started).toEqual([]);
  expect(waits[0]).toMatch(
    /^KubeletAhead: a1 would have a kubelet of v1\.36\.3\+k3s1, newer than the API server of s1 \(v1\.35\.9\+k3s1\)/,
  );
  expect(lookAt({ nodes: behind, spec, allow: ['KubeletAhead'] }).started).toEqual(['a1']);
});

test('an agent that breaks a rule waits, and the other nodes of the Plan start', () => {
  const all = [
    server('s1', 'v1.36.3+k3s1'),
    nodeAt('a1', 'v1.34.1+k3s1'),
    nodeAt('a2', 'v1.36.2+k3s1'),
    nodeAt('a3', 'v1.36.4+k3s1'),
  ];
  const spec = {
    nodeSelector: { matchExpressions: [{ key: CONTROL_PLANE, operator: 'DoesNotExist' as const }] },
  };
  expect(lookAt({ nodes: all, spec }).started).toEqual(['a2']);
});

test('servers and nodes with etcd start one at a time and before agents, without any policy', () => {
  const all = [
    nodeAt('a1', 'v1.36.2+k3s1'),
    server('s1', 'v1.36.2+k3s1'),
    server('s2', 'v1.36.2+k3s1'),
    nodeAt('e1', 'v1.36.2+k3s1', ETCD),
  ];
  const { started, waits } = lookAt({ nodes: all });
  expect(started).toEqual(['e1']);
  expect(waits.join('\n')).toContain('nodes of the control plane start first, one at a time');
  const agents = all.filter(({ metadata }) => metadata.name.startsWith('a'));
  const more = [...agents, nodeAt('a2', 'v1.36.2+k3s1')];
  expect(lookAt({ nodes: [server('s1', 'v1.36.3+k3s1'), ...more] }).started).toEqual(['s1']);
});

test('without a Node of a server, the version of the API server counts', () => {
  const agents = [nodeAt('a1', 'v1.35.9+k3s1')];
  const at = (version: string | undefined) =>
    lookAt({ nodes: agents, config: { apiServerVersion: () => version } });
  expect(at('v1.35.9+k3s1')).toMatchObject({
    started: [],
    waits: [expect.stringMatching(/^KubeletAhead: a1 .* API server of the cluster/)],
  });
  expect(at('v1.36.0+k3s1').started).toEqual(['a1']);
  expect(at(undefined).started).toEqual(['a1']);
});

test('with SYSTEM_UPGRADE_REFIT_CHECKS=false, a Plan starts whatever its version is, and in any order', () => {
  const config = { checksVersions: false };
  const upgrade = { image: 'rancher/k3s-upgrade:latest' };
  expect(lookAt({ nodes: CLUSTER, spec: { version: BACK }, config })).toMatchObject({
    started: ['a1', 's1'],
    told: undefined,
  });
  expect(lookAt({ nodes: CLUSTER, spec: { upgrade }, config }).told).toBe(undefined);
});

test.each<[string, Partial<CattleSpec>, Record<string, string>]>([
  ['runs a script', { upgrade: { image: 'example.com/script' } }, {}],
  ['says that it installs something else', {}, { [INSTALLS_ANNOTATION]: 'other' }],
])('a Plan that %s starts whatever its version is', (_name, spec, annotations) => {
  const { started } = lookAt({ nodes: CLUSTER, spec: { version: BACK, ...spec }, annotations });
  expect(started).toEqual(['a1', 's1']);
});

test.each<[string, Partial<CattleSpec>, Record<string, string>, Partial<CattleConfig>]>([
  [
    'the annotation says so',
    { upgrade: { image: 'example.com/mirrored' } },
    { [INSTALLS_ANNOTATION]: 'kubernetes' },
    {},
  ],
  [
    'the controller knows the mirror',
    { upgrade: { image: 'example.com/mirrored' } },
    {},
    { installers: ['mirrored'] },
  ],
  [
    'the tag of the image is older',
    { version: 'v1.36.3+k3s1', upgrade: { image: 'rancher/k3s-upgrade:v1.26.3-k3s1' } },
    {},
    {},
  ],
])('the rules apply if %s', (_name, spec, annotations, config) => {
  const { started, waits } = lookAt({
    nodes: CLUSTER,
    spec: { version: BACK, ...spec },
    annotations,
    config,
  });
  expect(started).toEqual([]);
  expect(waits[0]).toMatch(/^Downgrade/);
});

test('a release candidate is no downgrade for a node that reports the release', () => {
  const all = [server('s1', 'v1.36.3+rke2r1')];
  const spec = { version: 'v1.36.3-rc2+rke2r1', upgrade: { image: 'rancher/rke2-upgrade' } };
  expect(lookAt({ nodes: all, spec }).started).toEqual(['s1']);
});

test('a tag that is no version lifts the rules, and the condition of the Plan says it', () => {
  const upgrade = { image: 'rancher/k3s-upgrade:latest' };
  const { started, told } = lookAt({ nodes: CLUSTER, spec: { version: BACK, upgrade } });
  expect(started).toEqual(['s1']);
  expect(told).toContain('the image installs "latest", which is no version');
});

test('a tag that differs from the version is told in a condition of the Plan', () => {
  const upgrade = { image: 'rancher/k3s-upgrade:v1.36.4-k3s1' };
  expect(lookAt({ nodes: CLUSTER, spec: { upgrade } }).told).toContain(
    'the tag of the image installs v1.36.4+k3s1, but the version of the Plan is v1.36.3-k3s1',
  );
  expect(lookAt({ nodes: CLUSTER }).told).toBe(undefined);
});

test('a version of RKE2 for the image of K3s is told in a condition of the Plan', () => {
  const spec = { version: 'v1.36.3+rke2r1' };
  expect(lookAt({ nodes: CLUSTER, spec }).told).toContain(
    'the Job would pull the image with the tag v1.36.3-rke2r1',
  );
});

test('a Plan that leaves servers out by a label that they lack starts servers first, one at a time', () => {
  const all = [
    nodeAt('a1', 'v1.36.2+k3s1'),
    server('s1', 'v1.36.2+k3s1'),
    server('s2', 'v1.36.2+k3s1'),
  ];
  const expression = { key: 'node-role.kubernetes.io/master', operator: 'NotIn' as const };
  const nodeSelector = { matchExpressions: [{ ...expression, values: ['true'] }] };
  expect(lookAt({ nodes: all, spec: { nodeSelector } }).started).toHaveLength(1);
  expect(lookAt({ nodes: all, spec: { nodeSelector } }).started[0]).toMatch(/^s/);
});

test('a Plan of refit rollback goes back to the recorded version, and to no other one', () => {
  const annotations = { 'refit.upgrade.cattle.io/rolls-back': 'p-uid/run-1' };
  const back = (version: string, before: string, label: string) => {
    const a1 = nodeAt('a1', 'v1.36.3+k3s1');
    const labels = { ...a1.metadata.labels, [hashLabelOf('p')]: label };
    const record = { role: 'worker', version: before, nodes: [], others: true } as const;
    return lookAt({
      nodes: [CLUSTER[0] as Node, { ...a1, metadata: { ...a1.metadata, labels } }],
      spec: { version, nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'a1' } } },
      annotations,
      known: {
        decisions: answered({
          plan: 'cattle/system-upgrade/p',
          place: 'system-upgrade/cattle-p',
          exists: true,
          approvals: [],
          accepted: [],
          earlierRuns: [{ run: 'p-uid/run-1', before: [record] }],
        }),
      },
    });
  };
  expect(back('v1.36.2+k3s1', 'v1.36.2+k3s1', 'run-1')).toMatchObject({
    started: ['a1'],
    rollsBack: 'p-uid/run-1',
  });
  expect(back('v1.36.1+k3s1', 'v1.36.2+k3s1', 'run-1').started).toEqual([]);
  const forward = back('v1.36.4+k3s1', 'v1.36.2+k3s1', 'run-1');
  expect(forward).toMatchObject({ started: ['a1'], rollsBack: undefined });
});

test('a Plan that rolls back waits until the leader has read the record of the run', () => {
  const annotations = { 'refit.upgrade.cattle.io/rolls-back': 'p-uid/run-1' };
  const { started, waits } = lookAt({
    nodes: CLUSTER,
    spec: { version: 'v1.36.2+k3s1' },
    annotations,
    known: { decisions: UNASKED },
  });
  expect(started).toEqual([]);
  expect(waits).toEqual(['PreconditionsUnknown: reading which versions the nodes ran before']);
});

test('a Plan rolls back with an image that Refit does not know if a node has a newer version', () => {
  const annotations = { 'refit.upgrade.cattle.io/rolls-back': 'p-uid/run-1' };
  const upgrade = { image: 'registry.example.com/k3s-downgrade' };
  const back = (version: string) =>
    lookAt({ nodes: CLUSTER, spec: { version, upgrade }, annotations }).rollsBack;
  expect(back('v1.35.1+k3s1')).toBe('p-uid/run-1');
  expect(back('v1.39.1+k3s1')).toBeUndefined();
});

test('a Plan of refit rollback is a roll-back until it gets another version, also when no node is newer', () => {
  const annotations = {
    'refit.upgrade.cattle.io/rolls-back': 'p-uid/run-1',
    'refit.upgrade.cattle.io/rolls-back-to': 'v1.39.1-k3s1',
  };
  const back = (version: string) =>
    lookAt({ nodes: CLUSTER, spec: { version }, annotations }).rollsBack;
  expect(back('v1.39.1-k3s1')).toBe('p-uid/run-1');
  expect(back('v1.35.1-k3s1')).toBeUndefined();
});
