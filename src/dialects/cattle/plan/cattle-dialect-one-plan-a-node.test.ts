/** Proves that one Plan at a time works on a node, and that nodes with similar names each get a Job. */

import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { afterRecord } from '../../../../test/support/builders/cattle-records.ts';
import { decide } from '../../../../test/support/builders/decisions.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import { NO_FAILURES } from '../../../../test/support/builders/whole-records.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { CORDON_ANNOTATION } from '../../../drain/cordon-marks.ts';
import { claimsFor, claimsLeft } from '../../../engine/execute/claim-writes.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { gather } from '../../../engine/snapshot/gather.ts';
import {
  annotated,
  type Job,
  jobs,
  type Node,
  nodes,
  pods,
  secrets,
} from '../../../kube/resources.ts';
import { encodePresence } from '../../../signal/agent-presence.ts';
import { claimOn, withClaim } from '../../../signal/at-work.ts';
import { AGENT_ANNOTATION, controlNodes } from '../../../signal/names.ts';
import { autopilot } from '../../autopilot/plan/autopilot-dialect.ts';
import { FAILED_TYPE } from './attempts.ts';
import { cattle } from './cattle-dialect.ts';
import { freed } from './cattle-signal.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { latestHash } from './latest.ts';

const config = { name: 'c', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const node = (name: string): Node =>
  buildNode(name, { labels: { 'kubernetes.io/hostname': name } });
const hashOf = (plan: CattlePlan): string => latestHash(plan, 'v1.2.3', []);

function jobFor(plan: CattlePlan, name: string, type?: 'Complete' | 'Failed'): Job {
  const job = jobOf(config, {
    plan,
    node: node(name),
    version: 'v1.2.3',
    hash: hashOf(plan),
    settings: config.job,
  });
  const conditions = type ? [{ type, status: 'True', lastTransitionTime: later(0) } as const] : [];
  return {
    ...job,
    metadata: { ...job.metadata, creationTimestamp: later(0) },
    status: { active: 1, conditions },
  };
}

interface Outcome {
  readonly started: readonly string[];
  readonly waits: readonly string[];
  /** The names of the Jobs that are created. */
  readonly created: readonly string[];
}

function pass(
  plan: CattlePlan,
  all: readonly Node[],
  made: readonly Job[],
  dialect = cattle(config),
  policy: RolloutPolicy = DEFAULT_POLICY,
): Outcome {
  const worldOf = (present: readonly Node[]) =>
    buildWorldOf([nodes, present], [jobs, made], [pods, []], [secrets, []]);
  const before = gather(dialect, plan, worldOf(all), T0);
  const { record: after = before.rollout } = decide(before, policy, T0);
  const claims = claimsFor(
    { dialect, world: worldOf(all) },
    { plan, policy, before: before.rollout, after, failures: NO_FAILURES },
  );
  const claimed = new Map(claims.map(({ target, instruction }) => [target.name, instruction]));
  const marked = all.map((each): Node => {
    const written = claimed.get(each.metadata.name);
    return written?.kind === 'replace' ? written.object : each;
  });
  const world = worldOf(afterRecord(dialect, worldOf(marked), after, plan, marked));
  const recorded = dialect.project(after, plan, T0);
  const snapshot = gather(dialect, recorded, world, T0);
  const { signals, waits } = decide(snapshot, policy, T0);
  const sent = signals.map((signalling) =>
    dialect.signal.send(world, snapshot.rollout, signalling, recorded),
  );
  return {
    started: signals.map(({ target }) => target.name),
    waits: waits.flatMap(({ gate, reason }) =>
      gate === 'foreign-work' || gate === 'nodes-available' ? reason.message : [],
    ),
    created: sent.flatMap((each) => (each?.kind === 'create' ? each.object.metadata.name : [])),
  };
}

const other = buildCattlePlan('other');
const SPEC = { id: 'id1', timestamp: '', commands: [] };
const held = (job: Job): Job => ({ ...job, spec: { ...job.spec, suspend: true } });

const elsewhere = (job: Job): Job => ({
  ...job,
  metadata: { ...job.metadata, namespace: 'elsewhere' },
});
const unowned = (job: Job): Job => ({ ...job, metadata: { ...job.metadata, ownerReferences: [] } });

test.each<[string, Job, readonly string[], readonly string[]]>([
  [
    'a node waits while a Job of another Plan runs on it',
    jobFor(other, 'a'),
    [],
    ['Plan system-upgrade/other is at work on a'],
  ],
  [
    'the leader drains it for another Plan',
    held(jobFor(other, 'a')),
    [],
    ['Plan system-upgrade/other is at work on a'],
  ],
  ['it has ended', jobFor(other, 'a', 'Complete'), ['a'], []],
  ['it failed', jobFor(other, 'a', 'Failed'), ['a'], []],
  ['it runs on another node', jobFor(other, 'b'), ['a'], []],
  [
    'a node waits while a Job of a Plan in another namespace runs on it',
    elsewhere(jobFor(other, 'a')),
    [],
    ['Plan elsewhere/other is at work on a'],
  ],
  ['a Job that no Plan owns has its labels', unowned(elsewhere(jobFor(other, 'a'))), ['a'], []],
])('a node starts or waits: %s', (_name, job, started, waits) => {
  expect(pass(buildCattlePlan('p'), [node('a')], [job])).toMatchObject({ started, waits });
});

const CREATED = later(0);
const signal = (status?: string): Record<string, string> =>
  buildSignal({
    created: CREATED,
    ...(status === undefined ? {} : { status, timestamp: CREATED }),
  });

test.each<[string, Record<string, string>, boolean, readonly string[]]>([
  [
    'a node waits while it has a signal from a plan of another dialect',
    signal(),
    false,
    ['plan id1, which signalled it, is at work on a'],
  ],
  ['its signal ended', signal('Completed'), false, []],
  [
    'a Plan of another controller claims it',
    { 'upgrade.refit.dev/claimed-by': 'cattle/elsewhere/os/uid' },
    false,
    ['plan cattle/elsewhere/os is at work on a'],
  ],
  [
    'a plan of another dialect cordoned it',
    { [CORDON_ANNOTATION]: `uid/${CREATED}/Plan` },
    true,
    ['plan uid, which cordoned it, is at work on a'],
  ],
])('a node starts or waits: %s', (_name, annotations, unschedulable, waits) => {
  const marked = { ...annotated(node('a'), annotations), spec: { unschedulable } };
  expect(pass(buildCattlePlan('p'), [marked], [])).toMatchObject({
    started: waits.length > 0 ? [] : ['a'],
    waits,
  });
});

test('a node that plans of other dialects may have is claimed, unless plans share nodes', () => {
  const shared = annotated(node('a'), {
    [AGENT_ANNOTATION]: encodePresence({ version: '1', since: CREATED }),
  });
  const claimed = (each: Node, of = cattle(config)) => of.nodeSharing?.claims?.needOf(each);
  expect([claimed(shared), claimed(node('a'))]).toEqual(['always', 'with-limit']);
  expect(claimed(shared, cattle({ ...config, plansShareNodes: true }))).toBeUndefined();
});

test('a node without its claim gets no Job, though the Plan applies it', () => {
  const shared = annotated(node('a'), {
    [AGENT_ANNOTATION]: encodePresence({ version: '1', since: CREATED }),
  });
  const dialect = cattle(config);
  const plan = buildCattlePlan('p');
  const started = (each: Node): number => {
    const world = buildWorldOf([nodes, [each]], [jobs, []], [pods, []], [secrets, []]);
    const { record } = decide(gather(dialect, plan, world, T0), DEFAULT_POLICY, T0);
    const recorded = record ? dialect.project(record, plan, T0) : plan;
    expect(recorded.status?.applying).toEqual(['a']);
    const written = afterRecord(dialect, world, record, plan, [each]);
    const next = buildWorldOf([nodes, written], [jobs, []], [pods, []], [secrets, []]);
    return decide(gather(dialect, recorded, next, T0), DEFAULT_POLICY, T0).signals.length;
  };
  expect([started(shared), started(withClaim(shared, CLAIM)), started(node('a'))]).toEqual([
    0, 1, 1,
  ]);
});

const CLAIM = 'cattle/system-upgrade/p/p-uid';
const KEY = 'system-upgrade/p';

test('a node that is done has no claim: it goes with the write of its labels', () => {
  const claimed = withClaim(node('a'), CLAIM);
  expect(claimOn(freed(claimed, buildCattlePlan('p'), []))).toBeUndefined();
});

test('a claim is left over once its Plan is gone or does not want the node; those of other controllers never are', () => {
  const plan = buildCattlePlan('p');
  const status = { latestVersion: 'v1.2.3', latestHash: hashOf(plan), applying: ['a'] };
  const left = (plans: readonly CattlePlan[], claim = CLAIM): string[] => {
    const world = buildWorldOf(
      [nodes, [withClaim(node('a'), claim)]],
      [jobs, []],
      [pods, []],
      [secrets, []],
    );
    return claimsLeft({ dialect: cattle(config), world }, plans, KEY, T0).map(
      ({ node: { metadata } }) => metadata.name,
    );
  };
  expect([left([]), left([plan]), left([{ ...plan, status }])]).toEqual([['a'], ['a'], []]);
  const failure = { type: FAILED_TYPE, status: 'True', message: `a at ${CREATED}; generation 1` };
  const stopped = { ...plan, status: { ...status, conditions: [failure] } };
  expect(left([stopped])).toEqual(['a']);
  expect([left([], 'cattle/elsewhere/p/p-uid'), left([], 'autopilot//autopilot/uid')]).toEqual([
    [],
    [],
  ]);
});

test('plans of k0s respect a claim that is not their own, and claim where UpgradePolicies limit unavailable nodes', () => {
  const world = buildWorldOf([nodes, [withClaim(node('a'), CLAIM)]], [controlNodes, []]);
  const target = { key: 'a', name: 'a', state: 'pending', since: '' } as const;
  const occupant = (uid: string) =>
    autopilot.nodeSharing?.occupantOf(world, target, { metadata: { name: 'x', uid }, spec: SPEC });
  expect([occupant('uid'), occupant('p-uid')]).toEqual(['plan cattle/system-upgrade/p', undefined]);
  expect(autopilot.nodeSharing?.claims?.needOf(node('a'))).toBe('with-limit');
});

test('with PLANS_SHARE_NODES, a node starts although a Job of another Plan runs on it', () => {
  const shared = cattle({ ...config, plansShareNodes: true });
  expect(pass(buildCattlePlan('p'), [node('a')], [jobFor(other, 'a')], shared)).toMatchObject({
    started: ['a'],
    waits: [],
  });
});

test('an unavailable node that the Plan does not select counts for maxUnavailable', () => {
  const away = { ...node('b'), spec: { unschedulable: true } };
  const selected = buildCattlePlan('p', {
    nodeSelector: { matchLabels: { 'kubernetes.io/hostname': 'a' } },
  });
  const policy = { ...DEFAULT_POLICY, maxUnavailable: { nodes: 1 } };
  const { started, waits } = pass(selected, [node('a'), away], [], undefined, policy);
  expect(started).toEqual([]);
  expect(waits).toHaveLength(1);
});

test('nodes whose names agree up to the first dot get Jobs of different names', () => {
  const plan = buildCattlePlan('p', { concurrency: 2 });
  const first = jobFor(plan, 'a.x');
  const { created } = pass(plan, [node('a.x'), node('a.y')], [first]);
  expect(created).toHaveLength(1);
  expect(created).not.toContain(first.metadata.name);
  const second = {
    ...jobFor(plan, 'a.y'),
    metadata: { ...jobFor(plan, 'a.y').metadata, name: created[0] ?? '' },
  };
  expect(pass(plan, [node('a.x'), node('a.y')], [first, second])).toMatchObject({
    started: [],
    created: [],
  });
  expect(pass(plan, [node('a.y')], []).created).toEqual([first.metadata.name]);
});
