/** Tests that a node of a Plan which installs K3s or RKE2 has the image before it is cordoned, and what the leader does if it cannot be pulled. */
import { describe, expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { PULL_LABEL } from '../../../drain/own-pods.ts';
import type { NodeAction } from '../../../engine/model/decision.ts';
import { withStages } from '../../../engine/model/rollout.ts';
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import {
  type Job,
  jobs,
  type Node,
  nodes,
  type Pod,
  pods,
  secrets,
} from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { type CattleConfig, DEFAULT_JOB_SETTINGS } from './config.ts';
import { pullJobs } from './image-pull.ts';
import { INSTALLS_ANNOTATION } from './installed-version.ts';
import { HOSTNAME_LABEL } from './names.ts';

const NOW = T0 + 10 * MINUTE;
const OLD = 'v1.36.3+k3s1';
const IMAGE = 'rancher/k3s-upgrade';
const POLICY = buildPolicy({});

function nodeAt(name: string, labels: Record<string, string> = {}): Node {
  const node = buildNode(name, { labels: { [HOSTNAME_LABEL]: `host-${name}`, ...labels } });
  return { ...node, status: { ...node.status, nodeInfo: { kubeletVersion: OLD } } };
}

function planOf(spec: Partial<CattleSpec> = {}): CattlePlan {
  const upgrade = { image: IMAGE, ...spec.upgrade };
  return buildCattlePlan('p', { concurrency: 1, version: 'v1.36.4+k3s1', ...spec, upgrade });
}

/** A leader with the Nodes and the pull Jobs that it sees. */
function leaderOf(plan: CattlePlan, names: readonly string[], more: Partial<CattleConfig> = {}) {
  const settings = { name: 'c', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
  const dialect = cattle({ ...settings, ...more });
  const fleet = names.map((name) => nodeAt(name));
  const [, pullPods] = dialect.watched.filter(({ resource }) => resource.part !== undefined);
  let recorded = plan;
  return {
    dialect,
    /** Returns what the leader does, once it has recorded the Plan. */
    turn(
      seen: readonly Job[],
      policy: RolloutPolicy = POLICY,
      { now = NOW, nodes: all = fleet, stuck = [] as readonly Pod[] } = {},
    ) {
      const world = buildWorldOf(
        [nodes, all],
        [jobs, []],
        [pods, []],
        [secrets, []],
        [cattlePlans, [recorded]],
        [pullJobs, seen],
        ...(pullPods ? [[pullPods.resource, stuck] as const] : []),
      );
      const look = () => gather(dialect, recorded, world, now);
      const { record } = decide(look(), policy, now);
      const started = record
        ? withStages(record).flatMap(({ target }) =>
            target.state === 'intended' ? target.name : [],
          )
        : [];
      // A turn in which a node starts is not recorded, so that the test can look at the same Plan again.
      if (record && started.length === 0) recorded = dialect.project(record, recorded, now);
      const snapshot = look();
      const { nodeActions, waits } = decide(snapshot, policy, now);
      const doneFor = (kind: NodeAction['kind']): string[] =>
        nodeActions.flatMap((each) => (each.kind === kind ? each.target.name : []));
      const written = nodeActions.flatMap(({ kind, stage, target }): Job[] => {
        if (kind !== 'prefetch') return [];
        const write = dialect.signal.downloads?.prefetch(
          world,
          snapshot.rollout,
          stage,
          target,
          {},
        );
        return write?.kind === 'create' ? [write.object] : [];
      });
      const told = waits.map(({ reason }) => `${reason.code}: ${reason.message}`);
      return { started, asked: doneFor('prefetch'), ended: doneFor('end-prefetch'), told, written };
    },
  };
}

const withStatus = (job: Job, status: NonNullable<Job['status']>): Job => ({
  ...job,
  metadata: { ...job.metadata, uid: `uid-${job.metadata.name}`, creationTimestamp: later(0) },
  status,
});
const ended = (job: Job, type: 'Complete' | 'Failed', at = later(9 * MINUTE)): Job =>
  withStatus(job, {
    conditions: [
      {
        type,
        status: 'True',
        reason: 'DeadlineExceeded',
        message: 'too long',
        lastTransitionTime: at,
      },
    ],
  });

/** Returns the Job that pulls on the first node of the Plan. */
function firstPull(plan: CattlePlan, names: readonly string[] = ['a']) {
  const leader = leaderOf(plan, names);
  const [job] = leader.turn([]).written;
  if (!job) throw new Error('no pull');
  return { leader, job };
}

describe('the Job that pulls', () => {
  const secret = [{ name: 'registry' }];
  const toleration = { key: 'spot', operator: 'Exists' } as const;
  const { job } = firstPull(
    planOf({ imagePullSecrets: secret, tolerations: [toleration], serviceAccountName: 'upgrades' }),
  );
  const template = job.spec?.['template'] as { readonly spec: Record<string, unknown> };

  test('has the image of the upgrade, runs on the node of the upgrade, and ends at once', () => {
    expect(template.spec).toMatchObject({
      containers: [{ image: `${IMAGE}:v1.36.4-k3s1`, args: ['true'] }],
      imagePullSecrets: secret,
      serviceAccountName: 'upgrades',
      tolerations: [{ key: 'node.kubernetes.io/unschedulable' }, toleration],
      restartPolicy: 'Never',
    });
    expect(JSON.stringify(template.spec['affinity'])).toContain('host-a');
    expect(job.spec).toMatchObject({ activeDeadlineSeconds: 300, ttlSecondsAfterFinished: 300 });
  });

  test('has no access to the host or to the API server', () => {
    expect(template.spec).toMatchObject({ automountServiceAccountToken: false });
    expect(JSON.stringify(template)).not.toMatch(
      /host(?:PID|IPC|Network|Path)|volume|"privileged":true/,
    );
  });

  test('belongs to the Plan, and has no label by which the original would take it for its own', () => {
    expect(job.metadata.ownerReferences).toMatchObject([{ kind: 'Plan', name: 'p' }]);
    const labels = { ...job.metadata.labels, ...(template as Partial<Job>).metadata?.labels };
    expect(Object.keys(labels)).toEqual([PULL_LABEL]);
  });

  test('has a stable name of at most 63 characters', () => {
    expect(job.metadata.name).toMatch(/^refit-pull-p-on-a-with-/);
    expect(firstPull(planOf()).job.metadata.name).toBe(firstPull(planOf()).job.metadata.name);
    const long = `${'n'.repeat(100)}.example.com`;
    expect(firstPull(planOf(), [long]).job.metadata.name.length).toBeLessThanOrEqual(63);
  });
});

describe('a node', () => {
  test('starts only after its image was pulled', () => {
    const { leader, job } = firstPull(planOf());
    expect(leader.turn([]).started).toEqual([]);
    expect(
      leader.turn([withStatus(job, { startTime: later(0), active: 1, ready: 1 })]),
    ).toMatchObject({
      started: [],
      asked: [],
      told: ['DownloadPending: a downloads what the plan installs, before its node is cordoned'],
    });
    expect(leader.turn([ended(job, 'Complete')]).started).toEqual(['a']);
  });

  test('is not asked again after Kubernetes has deleted the complete Job', () => {
    const { leader, job } = firstPull(planOf());
    leader.turn([ended(job, 'Complete')]);
    expect(leader.turn([])).toMatchObject({ started: ['a'], asked: [] });
  });

  test('whose pull failed never starts, and is asked again after a minute', () => {
    const { leader, job } = firstPull(planOf());
    const failed = ended(job, 'Failed', later(9.5 * MINUTE));
    expect(leader.turn([failed])).toMatchObject({ started: [], asked: [], ended: [] });
    const later1 = { now: NOW + MINUTE };
    expect(leader.turn([failed], POLICY, later1)).toMatchObject({ started: [], ended: ['a'] });
    expect(leader.turn([], POLICY, later1)).toMatchObject({ started: [], asked: ['a'] });
    expect(
      leader.turn([failed], buildPolicy({ downloadProblemMs: 0 }), { now: NOW + 60 * MINUTE })
        .started,
    ).toEqual([]);
  });

  test('whose kubelet cannot pull waits with the words of the kubelet, also just after the Job failed', () => {
    const { leader, job } = firstPull(planOf());
    const running = withStatus(job, { startTime: later(0), active: 1, ready: 0 });
    const pod: Pod = {
      metadata: { name: 'x', ownerReferences: [{ uid: running.metadata.uid ?? '' }] as never },
      status: {
        phase: 'Pending',
        containerStatuses: [
          { name: 'pull', state: { waiting: { reason: 'ErrImagePull', message: 'not found' } } },
        ],
      },
    };
    const words =
      'DownloadFailed: a cannot download what the plan installs: its container pull waits (ErrImagePull: not found)';
    expect(leader.turn([running], POLICY, { stuck: [pod] })).toMatchObject({
      started: [],
      told: [words],
    });
    expect(leader.turn([ended(job, 'Failed')]).told[0]).toContain(words);
  });

  test('that cannot pull does not keep the other nodes from starting', () => {
    const { leader, job } = firstPull(planOf(), ['a', 'b']);
    const [first = ''] = leader.turn([]).asked;
    const other = first === 'a' ? 'b' : 'a';
    const failed = ended(job, 'Failed');
    const { asked, written } = leader.turn([failed]);
    expect(asked).toEqual([other]);
    const pulled = written.map((each) => ended(each, 'Complete'));
    expect(leader.turn([failed, ...pulled]).started).toEqual([other]);
  });

  test('pulls anew if the Plan gets another image without another hash, or the node was replaced', () => {
    const { leader, job } = firstPull(planOf());
    const annotations = { ...job.metadata.annotations };
    for (const key of Object.keys(annotations)) {
      const changed = { ...annotations, [key]: 'another' };
      const outdated = { ...job, metadata: { ...job.metadata, annotations: changed } };
      expect(leader.turn([ended(outdated, 'Complete')])).toMatchObject({
        started: [],
        ended: ['a'],
      });
    }
  });
});

describe('which nodes are asked', () => {
  const names = ['a', 'b', 'c', 'd'];
  test.each<[string, RolloutPolicy, number]>([
    ['as many as start next by default', POLICY, 2],
    ['all with prefetch: All', buildPolicy({ prefetch: 'all' }), 4],
    ['none with prefetch: None', buildPolicy({ prefetch: 'none' }), 0],
    ['none of a paused plan', buildPolicy({ paused: true }), 0],
  ])('%s', (_what, policy, count) => {
    const leader = leaderOf(planOf({ concurrency: 2 }), names);
    expect(leader.turn([], policy).asked).toHaveLength(count);
  });

  test('with prefetch: None, nodes start without a pull', () => {
    const leader = leaderOf(planOf(), ['a']);
    expect(leader.turn([], buildPolicy({ prefetch: 'none' })).started).toEqual(['a']);
  });

  test.each<[string, CattlePlan, Partial<CattleConfig>]>([
    ['of an image that installs something else', planOf({ upgrade: { image: 'img' } }), {}],
    ['without the checks of Refit', planOf(), { checksVersions: false }],
    [
      'of a Plan that says that it installs something else',
      {
        ...planOf(),
        metadata: { ...planOf().metadata, annotations: { [INSTALLS_ANNOTATION]: 'other' } },
      },
      {},
    ],
  ])('a node %s starts without a pull, as in the original', (_what, plan, config) => {
    expect(leaderOf(plan, ['a'], config).turn([])).toMatchObject({ started: ['a'], asked: [] });
  });

  test('a Windows node starts without a pull, because the container of the Job runs on Linux', () => {
    const windows = nodeAt('a', { 'kubernetes.io/os': 'windows' });
    const settings = { ...DEFAULT_JOB_SETTINGS, kubectlImageWindows: 'kubectl' };
    const leader = leaderOf(planOf(), ['a'], { job: settings });
    expect(leader.turn([], POLICY, { nodes: [windows] })).toMatchObject({
      started: ['a'],
      asked: [],
    });
  });
});

test('without the checks of Refit, the controller watches no Jobs that pull', () => {
  const { dialect } = leaderOf(planOf(), [], { checksVersions: false });
  expect(dialect.watched.filter(({ resource }) => resource.part !== undefined)).toEqual([]);
  expect(dialect.signal.downloads).toBeUndefined();
});
