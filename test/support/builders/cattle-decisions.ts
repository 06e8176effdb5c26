/** Checks for tests what one pass does to a Plan of Rancher, given its nodes and Jobs. */
import { expect, test } from 'vitest';
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattle } from '../../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../../src/dialects/cattle/plan/config.ts';
import { jobOf } from '../../../src/dialects/cattle/plan/job.ts';
import { latestHash } from '../../../src/dialects/cattle/plan/latest.ts';
import type { Instruction } from '../../../src/engine/contract/signal.ts';
import type { World } from '../../../src/engine/contract/world.ts';
import { inState, type Rollout } from '../../../src/engine/model/rollout.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../../src/engine/policy/rollout-policy.ts';
import { gather } from '../../../src/engine/snapshot/gather.ts';
import {
  type Condition,
  type Job,
  jobs,
  type Node,
  nodes,
  pods,
  secrets,
} from '../../../src/kube/resources.ts';
import { later, MINUTE, T0 } from '../clock/times.ts';
import { buildCattlePlan, type CattleSpec } from './cattle-plans.ts';
import { afterRecord } from './cattle-records.ts';
import { decide } from './decisions.ts';
import { buildNode } from './nodes.ts';
import { buildWorldOf } from './worlds-of-kinds.ts';

export const NAMESPACE = 'system-upgrade';
const config = { name: 'controller', namespace: NAMESPACE, job: DEFAULT_JOB_SETTINGS };
export const dialect = cattle(config);
export const policyOf = (plan: CattlePlan): RolloutPolicy =>
  dialect.planRules?.apply(plan, DEFAULT_POLICY) ?? DEFAULT_POLICY;
export const NOW = T0 + 10 * MINUTE;

export const hashOf = (version: string): string => latestHash(buildCattlePlan('p'), version, []);
export const HASH = hashOf('v1.2.3');

export function node(
  name: string,
  labels: Record<string, string> = {},
  ready: 'True' | 'False' = 'True',
): Node {
  return buildNode(
    name,
    { labels: { 'kubernetes.io/hostname': `host-${name}`, ...labels } },
    ready,
  );
}

export function job(
  name: string,
  conditions: Partial<Condition>[] = [],
  version = 'v1.2.3',
  spec: Partial<CattleSpec> = {},
): Job {
  const plan = buildCattlePlan('p', spec);
  const settings = config.job;
  const rendered = jobOf(config, {
    plan,
    node: node(name),
    version,
    hash: hashOf(version),
    settings,
  });
  const status = { startTime: later(0), active: 1, conditions: conditions as Condition[] };
  return {
    ...rendered,
    metadata: { ...rendered.metadata, uid: name, creationTimestamp: later(0) },
    status,
  };
}

export const complete = {
  type: 'Complete',
  status: 'True',
  lastTransitionTime: later(MINUTE),
} as const;

interface Pass {
  readonly plan: CattlePlan;
  readonly now?: number;
  readonly nodes?: readonly Node[];
  readonly jobs?: readonly Job[];
}

export function worldOf({ nodes: all = [], jobs: made = [] }: Pass): World {
  return buildWorldOf([nodes, all], [jobs, made], [pods, []], [secrets, []]);
}

interface Outcome {
  readonly plan: CattlePlan;
  /** Names of the nodes that get a Job. */
  readonly signalled: string[];
  readonly recordedAgain: boolean;
  /** The nodes on which the pass records that they are done. */
  readonly finished: Node[];
  /** The write that the pass sends for each signalled node. */
  readonly sent: (Instruction | undefined)[];
}

/** Runs a pass and records its decision, then runs a second pass as a leader that has just started. */
export function pass(situation: Pass): Outcome {
  const { plan: before, nodes: all = [] } = situation;
  const now = situation.now ?? NOW;
  const first = decide(gather(dialect, before, worldOf(situation), now), policyOf(before), now);
  const plan = first.record ? dialect.project(first.record, before, now) : before;
  const finished = first.record ? finishedBy(first.record, situation) : [];
  const written = afterRecord(dialect, worldOf(situation), first.record, before, all);
  const world = worldOf({ ...situation, nodes: written });
  const snapshot = gather(dialect, plan, world, now + 1000);
  const { signals, record } = decide(snapshot, policyOf(plan), now + 1000);
  const sent = signals.map((signalling) =>
    dialect.signal.send(world, snapshot.rollout, signalling, plan),
  );
  const signalled = sent.flatMap((instruction) => {
    return instruction?.kind === 'create'
      ? (instruction.object.metadata.labels?.['upgrade.cattle.io/node'] ?? [])
      : [];
  });
  return { plan, signalled, recordedAgain: record !== undefined, finished, sent };
}

function finishedBy(rollout: Rollout, situation: Pass): Node[] {
  const world = worldOf(situation);
  return rollout.stages.flatMap((stage) =>
    inState(stage, 'done').flatMap((target) => {
      const instruction = dialect.signal.finish?.(world, rollout, stage, target, situation.plan);
      return instruction?.kind === 'replace' ? [instruction.object] : [];
    }),
  );
}

function toldBy({ status }: CattlePlan): string[] {
  return (status?.conditions ?? []).map(({ type, status: is, reason, message }) =>
    [type, is, reason, ...(message ? [message] : [])].join(' '),
  );
}

export const NOTHING = 'RefitNoTargets True NoTargets there was no target, so nothing was done';
export const GOOD = ['Validated True PlanIsValid', 'LatestResolved True Version'];
export const of = (spec: Partial<CattleSpec> = {}, status?: CattlePlan['status']): CattlePlan => ({
  ...buildCattlePlan('p', spec),
  ...(status ? { status } : {}),
});
/** The status that is recorded while these host names are in progress. */
export const running = (applying: string[], more: object[] = []): CattlePlan['status'] => ({
  conditions: [
    { type: 'Complete', status: 'False', reason: 'SyncJob' },
    { type: 'Validated', status: 'True', reason: 'PlanIsValid' },
    { type: 'LatestResolved', status: 'True', reason: 'Version' },
    ...(more as { type: string; status: string }[]),
  ],
  latestVersion: 'v1.2.3',
  latestHash: HASH,
  applying,
});

interface Expected {
  readonly conditions?: string[];
  readonly applying?: string[];
  readonly signalled?: string[];
}

type Row = [string, Pass, Expected];

export const checkPasses = (rows: Row[]): void => {
  test.each(rows)('%s', (_name, situation, { conditions, applying = [], signalled = [] }) => {
    const { plan, ...after } = pass(situation);
    if (conditions) expect(toldBy(plan)).toEqual(conditions);
    expect(plan.status?.applying ?? []).toEqual(applying);
    expect({ signalled: after.signalled, recordedAgain: after.recordedAgain }).toEqual({
      signalled,
      recordedAgain: false,
    });
  });
};
