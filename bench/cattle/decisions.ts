/** Measures the time of one decision after one Job has changed, for Plans of different sizes. */
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattle } from '../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { jobOf } from '../../src/dialects/cattle/plan/job.ts';
import { withAttempt } from '../../src/dialects/cattle/plan/node-records.ts';
import type { Dialect } from '../../src/engine/contract/dialect.ts';
import { newTarget } from '../../src/engine/model/rollout.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import { gather, type Known } from '../../src/engine/snapshot/gather.ts';
import { targetTimes } from '../../src/engine/snapshot/watch-times.ts';
import { freshWorld, OwnWrites, viewsOf } from '../../src/engine/snapshot/world.ts';
import {
  type Job,
  jobs,
  type KubeObject,
  type Node,
  nodes,
  pods,
  secrets,
} from '../../src/kube/resources.ts';
import { createStore } from '../../src/kube/watch/store.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import type { Decision } from '../../test/support/builders/decisions.ts';
import { decide } from '../../test/support/builders/decisions.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { median } from '../statistics.ts';
import { examplePlan, NAMESPACE } from './rig.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const LATER = NOW + 60_000;
/** The number of nodes at work, which is the same for a Plan of any size. Half of all nodes are done. */
export const AT_WORK = 20;
/** The number of Jobs of these nodes that the watch does not show yet. */
const UNSEEN = 2;
/** An odd number, so that the median is a measured value. */
const ROUNDS = 41;
const ZONES = 3;
/** The most times that a plan of the scene is recorded before nothing changes any more. */
const MOST_RECORDS = 10;

/**
 * Returns the CPU time of one decision in milliseconds. CPU time does not depend on other processes. The result is the
 * median of many decisions, each after a change of another Job.
 */
export function timeDecision(count: number, settings: SceneSettings = {}): number {
  const scene = sceneOf(count, settings);
  const times = Array.from({ length: ROUNDS }, (_, round) => {
    scene.change(round);
    const before = process.cpuUsage();
    scene.decide();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return median(times);
}

export const CONFIG = { name: 'suc', namespace: NAMESPACE, job: DEFAULT_JOB_SETTINGS };

export interface DecisionScene {
  /** Changes one Job in the same way as the Job controller. */
  change(round: number): void;
  decide(): Decision;
}

export interface SceneSettings {
  readonly dialect?: Dialect;
  readonly policy?: RolloutPolicy;
  /** The facts that the snapshot has in addition to the objects. */
  readonly known?: Known;
}

export function sceneOf(
  count: number,
  { dialect = cattle(CONFIG), policy = DEFAULT_POLICY, known: more = {} }: SceneSettings = {},
): DecisionScene {
  const stores = new Map(
    [nodes, jobs, pods, secrets].map(
      (kind) => [kind, createStore<KubeObject>(silentLogger)] as const,
    ),
  );
  const views = viewsOf(
    [...stores].map(([kind, store]) => {
      const get = (name: string, namespace?: string) =>
        store.get(namespace === undefined ? name : `${namespace}/${name}`);
      return [
        kind,
        { get, list: () => store.list(), resourceVersion: store.resourceVersion },
      ] as const;
    }),
  );
  const ownWrites = new OwnWrites();
  const world = freshWorld(views, ownWrites);
  const draft = examplePlan(AT_WORK);
  const plan: CattlePlan = {
    ...draft,
    metadata: { ...draft.metadata, uid: 'plan', creationTimestamp: rfc3339(NOW) },
  };
  const resolved = dialect.resolve(plan, world, NOW);
  const { version = '' } = resolved.stages[0] ?? {};
  const begun = (node: Node): Node => {
    const target = newTarget({ key: '', name: node.metadata.name }, NOW);
    return withAttempt(node, plan, target, { hash: resolved.id, version, isBegun: false });
  };
  const all = Array.from({ length: count }, (_, index) => {
    if (index % 2 === 0) return nodeOf(index, resolved.id);
    const node = nodeOf(index, undefined);
    return index < 2 * AT_WORK ? begun(node) : node;
  });
  const working = all.filter((_, index) => index % 2 === 1).slice(0, AT_WORK);
  const jobFor = (node: Node, active: number): Job => {
    const job = jobOf(CONFIG, { plan, node, version, hash: resolved.id, settings: CONFIG.job });
    const metadata = {
      ...job.metadata,
      uid: `job-${node.metadata.name}`,
      resourceVersion: String(active),
      creationTimestamp: rfc3339(NOW),
    };
    return { ...job, metadata, status: { active, startTime: rfc3339(NOW) } };
  };
  for (const node of all) stores.get(nodes)?.apply('ADDED', node);
  for (const node of working.slice(UNSEEN)) stores.get(jobs)?.apply('ADDED', jobFor(node, 1));
  // The watch does not show the Jobs of the first UNSEEN nodes yet. Only the record of own writes contains them.
  stores.get(jobs)?.advance('0');
  for (const node of working.slice(0, UNSEEN)) ownWrites.remember(jobs, jobFor(node, 1));
  const watch = targetTimes();
  const decideOn = (recorded: CattlePlan): Decision => {
    const now = systemClock.monotonic();
    const known: Known = {
      ...more,
      watch: (target, observation) => watch(target, observation, now),
    };
    return decide(gather(dialect, recorded, world, LATER, known), policy, LATER);
  };
  const recorded = recordedAtRest(plan, (each) => {
    const { record } = decideOn(each);
    return record && dialect.project(record, each, NOW);
  });
  return {
    change: (round) => {
      const node = working[UNSEEN + (round % (working.length - UNSEEN))];
      if (node) stores.get(jobs)?.apply('MODIFIED', jobFor(node, 2 + round));
    },
    decide: () => decideOn(recorded),
  };
}

/** Records the rollout in the plan until nothing changes. Throws if this does not end, as with nodes that lack a record. */
function recordedAtRest(
  plan: CattlePlan,
  record: (plan: CattlePlan) => CattlePlan | undefined,
): CattlePlan {
  let recorded = plan;
  for (let round = 0; round < MOST_RECORDS; round++) {
    const next = record(recorded);
    if (!next) return recorded;
    recorded = next;
  }
  throw new Error(`the plan is recorded anew after ${MOST_RECORDS} rounds`);
}

function nodeOf(index: number, hash: string | undefined): Node {
  const node = simulatedNode(`node-${index}.example.com`);
  const labels = {
    ...node.metadata.labels,
    'topology.kubernetes.io/zone': `zone-${index % ZONES}`,
    ...(hash === undefined ? {} : { 'plan.upgrade.cattle.io/bench': hash }),
  };
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: rfc3339(NOW) }] as const;
  const metadata = { ...node.metadata, labels, uid: `node-${index}`, resourceVersion: '1' };
  return { ...node, metadata, status: { ...node.status, conditions: [...conditions] } };
}
