/** Sends a Job to each node, reads the conditions of the Job as the report, and labels the node when it is done. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { withoutAnyCordon } from '../../../drain/cordon-marks.ts';
import type { Instruction, Signal } from '../../../engine/contract/signal.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { UnnamedCordon } from '../../../engine/model/facts.ts';
import type { Rollout, Stage, Target } from '../../../engine/model/rollout.ts';
import { type Job, jobs, type Node, nodes } from '../../../kube/resources.ts';
import { claimOf, withoutClaim } from '../../../signal/at-work.ts';
import { ownMember } from '../../../util/own-member.ts';
import { type Attempts, withMachine } from './attempts.ts';
import { holds } from './conditions.ts';
import type { CattleConfig } from './config.ts';
import { imagePulls } from './image-pull.ts';
import { jobNamesOf, jobOf } from './job.ts';
import {
  isCordonedBy,
  unnamedCordonOn,
  withCordonMark,
  withForeignCordonMark,
  withJobCordonMark,
  withoutCordonMark,
  withUnnamedCordonMark,
} from './job-cordons.ts';
import { isLeftOut, type JobQuestion, observationOf, openOn, ownJob } from './job-observation.ts';
import { isHeld, leaderDrains } from './leader-drain.ts';
import * as names from './names.ts';
import {
  attemptOn,
  earlierOn,
  tookOn,
  withAttempt,
  withoutAttempt,
  withoutOldRecords,
  withSuccess,
  withUpgrade,
} from './node-records.ts';
import { isPaused, jobFor, jobsByNode, latestJobsOn, nodeOf } from './plan-jobs.ts';
import { createPullMemory } from './pull-memory.ts';

/**
 * Returns the signal of the dialect. `config` has the Job settings of one controller. Read-only
 * commands have no `attempts`, so for them the recorded state decides.
 */
export function jobSignal(config: CattleConfig, attempts?: Attempts): Signal<CattlePlan> {
  const drainsHere = !config.job.drainInJob;
  const planOf = (rollout: Rollout): CattlePlan => planIn(config.namespace, rollout);
  return {
    read: (world, rollout, stage, target, plan) =>
      observationOf({ world, rollout, stage, target, plan, attempts, drainsHere }),

    observable: jobsByNode,

    remember(world, { id }, { version }, target, plan) {
      const node = world.get(nodes, target.name);
      const isDrainedHere = leaderDrains(plan, config.job);
      const object =
        node && remembered(world, node, target, plan, { hash: id, version, isDrainedHere });
      return !object || object === node ? undefined : { kind: 'replace', resource: nodes, object };
    },

    send(world, rollout, { stage, target }, plan) {
      const node = world.get(nodes, target.name);
      if (!node || rollout.problems.length > 0) return undefined;
      const job = jobFor(world, rollout, target.name, plan);
      if (job && isPaused(job))
        return { kind: 'replace', resource: jobs, object: withSpec(job, { parallelism: 1 }) };
      // The next Job would have the same name, so the Job of the earlier attempt is deleted first.
      if (job) return { kind: 'delete', resource: jobs, object: job };
      const name = freeName(world, target.name, plan, rollout);
      const { version } = stage;
      const settings = config.job;
      const rendered = jobOf(config, { plan, node, name, version, hash: rollout.id, settings });
      return { kind: 'create', resource: jobs, object: withMachine(rendered, node) };
    },

    touches(world, rollout, _stage, { name }, plan) {
      const job = jobFor(world, rollout, name, plan);
      if (job) return { resource: jobs, object: job };
      const { namespace = '' } = plan.metadata;
      const metadata = { name: freeName(world, name, plan, rollout), namespace };
      return { resource: jobs, object: { metadata }, isAbsent: true };
    },

    /**
     * If the Job is held, its node is now drained, so this method starts the Job. Otherwise the Job is complete and the
     * pause of its node after the Job is over, so this method uncordons the node.
     */
    acknowledge(world, rollout, _stage, target) {
      const plan = planOf(rollout);
      const job = jobFor(world, rollout, target.name, plan);
      if (job && isHeld(job))
        return { kind: 'replace', resource: jobs, object: withSpec(job, { suspend: false }) };
      const node = world.get(nodes, target.name);
      return node && uncordoned(job, node, plan, target);
    },

    keepReport: (world, rollout, _stage, target) => {
      const plan = planOf(rollout);
      const node = world.get(nodes, target.name);
      const job = ownJob(world, rollout, target.name, plan, attempts);
      return node && job && keptReport(world, job, node, plan, target);
    },

    /** Deletes the Job. The engine calls it only for a held Job, or for a Job whose node was deleted. */
    cancel(world, rollout, _stage, { name }) {
      const job = jobFor(world, rollout, name, planOf(rollout));
      return job && { kind: 'delete', resource: jobs, object: job };
    },

    finish(world, rollout, stage, target, plan) {
      const node = world.get(nodes, target.name);
      const own = ownJob(world, rollout, target.name, plan, attempts);
      return node && ended({ world, rollout, stage, target, plan }, node, own);
    },

    ...(config.checksVersions !== false && {
      tookMs,
      earlierMs,
      downloads: imagePulls(config, attempts && createPullMemory()),
    }),
  };
}

type Times = Required<Pick<Signal<CattlePlan>, 'tookMs' | 'earlierMs'>>;

const tookMs: Times['tookMs'] = (world, { id }, _stage, { name }, plan) => {
  const node = world.get(nodes, name);
  return node && tookOn(node, plan, id);
};

const earlierMs: Times['earlierMs'] = (world, { id }, _stage, { name }, plan) => {
  const node = world.get(nodes, name);
  return node && earlierOn(node, plan, id);
};

/** Returns the write after the target is done: it frees the Node, labels it, and records the upgrade. */
function ended(
  { world, rollout, stage: { version }, target: { since }, plan }: Ended,
  node: Node,
  own: Job | undefined,
): Instruction {
  const free = freed(node, plan, openOn(node, plan, world, own));
  const end = { hash: rollout.id, version, ended: since, began: own?.metadata.creationTimestamp };
  const over = isLeftOut(world, rollout, node, plan)
    ? withoutAttempt(free, plan)
    : withUpgrade(finished(free, plan, rollout.id, version), plan, end);
  return { kind: 'replace', resource: nodes, object: withoutOldRecords(over, plan, world) };
}

type Ended = Pick<JobQuestion, 'world' | 'rollout' | 'stage' | 'target' | 'plan'>;

/** Returns the Node with a record that the Job succeeded; the same Node if the Job did not succeed. */
function withSuccessOf(job: Job | undefined, node: Node, plan: CattlePlan, target: Target): Node {
  const completion = job && holds(job, 'Complete');
  const hash = job && names.hashOn(job, plan);
  if (!completion || hash === undefined) return node;
  const { creationTimestamp: created = target.since } = job.metadata;
  const { lastTransitionTime: succeeded = created } = completion;
  return withSuccess(node, plan, target, { hash, created, succeeded });
}

/** Returns what is known of the Plan of a rollout: its name, its uid and its namespace. */
function planIn(namespace: string, { source: { name, uid } }: Rollout): CattlePlan {
  return { metadata: { name, uid, namespace } };
}

/** Returns the write that uncordons the Node, and records that its Job succeeded. */
function uncordoned(
  job: Job | undefined,
  node: Node,
  plan: CattlePlan,
  target: Target,
): Instruction {
  const free = withForeignCordonMark(withoutAnyCordon(node), plan);
  return { kind: 'replace', resource: nodes, object: withSuccessOf(job, free, plan, target) };
}

/** Returns the write that records on the Node that the Job succeeded, and that the cordon of the Node is that of the Job. */
function keptReport(
  world: World,
  job: Job,
  node: Node,
  plan: CattlePlan,
  target: Target,
): Instruction {
  const open = openOn(node, plan, world, job);
  const marked = withJobCordonMark(node, plan, names.hashOn(job, plan) ?? '', open);
  return {
    kind: 'replace',
    resource: nodes,
    object: withSuccessOf(job, marked, plan, target),
  };
}

interface Begun {
  readonly hash: string;
  readonly version: string;
  /** True if the leader cordons the nodes of the Plan. */
  readonly isDrainedHere: boolean;
}

/** Returns the Node with what must be known before the target is recorded; the same Node if nothing changes. */
function remembered(
  world: World,
  node: Node,
  target: Target,
  plan: CattlePlan,
  { hash, version, isDrainedHere }: Begun,
): Node {
  const [last] = latestJobsOn(target.name, plan, world);
  if (target.state !== 'intended') return withCordonMark(node, plan, target, last);
  const isAgain = names.hashOn(node, plan) === hash;
  const start = isAgain ? withoutLabel(node, plan) : node;
  // If an attempt is recorded already, then Refit began it, so no Job of the original controller cordoned the node.
  const isBegunHere = [hash, plan.status?.latestHash ?? ''].some((each) =>
    attemptOn(node, plan, each),
  );
  const isOfLeader = isDrainedHere && !last && isBegunHere;
  const marked = isOfLeader
    ? withUnnamedCordonMark(start, plan)
    : withCordonMark(start, plan, target, last);
  const isBegun = last !== undefined && names.hashOn(last, plan) === hash;
  return withAttempt(marked, plan, target, { hash, version, isBegun });
}

/**
 * Returns the owner of the cordon on the Node of a target. The engine calls this function only if the cordon itself
 * names no owner. Returns undefined for a target that is done.
 */
export function unnamedCordon(
  world: World,
  _rollout: Rollout,
  _stage: Stage,
  target: Target,
  plan: CattlePlan,
): UnnamedCordon | undefined {
  return unnamedCordonOn(
    world.get(nodes, target.name),
    plan,
    target,
    latestJobsOn(target.name, plan, world),
  );
}

/**
 * Returns the name that the original gives the Job. If the Job of another node already has it, returns a name with the
 * whole name of the node.
 */
function freeName(
  world: World,
  nodeName: string,
  { metadata }: CattlePlan,
  { id }: Rollout,
): string {
  const [name, longer] = jobNamesOf(metadata.name, nodeName, id);
  const present = world.get(jobs, name, metadata.namespace);
  return present && nodeOf(present) !== nodeName ? longer : name;
}

function withSpec(job: Job, change: NonNullable<Job['spec']>): Job {
  return { ...job, spec: { ...job.spec, ...change } };
}

/** Returns the node with the labels of the Plan and its hash label; unchanged if the hash label has the value that excludes the node. */
function finished(node: Node, plan: CattlePlan, hash: string, version: string): Node {
  const { metadata, spec } = plan;
  const own = names.expandedLabels(spec?.postCompleteLabels, version, hash);
  const before = node.metadata.labels ?? {};
  const label = names.hashLabelOf(metadata.name);
  const labels =
    ownMember(before, label) === names.DISABLED ? before : { ...before, ...own, [label]: hash };
  return { ...node, metadata: { ...node.metadata, labels } };
}

/**
 * Returns the node without its hash label. A node that is upgraded to the same version again must not have the label until the
 * new Job has ended.
 */
function withoutLabel(node: Node, { metadata }: CattlePlan): Node {
  const label = names.hashLabelOf(metadata.name);
  const others = Object.entries(node.metadata.labels ?? {}).filter(([key]) => key !== label);
  const labels = Object.fromEntries(others);
  return { ...node, metadata: { ...node.metadata, labels } };
}

/** Returns the node without the claim of the plan, and without the cordon of its Jobs. */
export function freed(node: Node, plan: CattlePlan, all: readonly Job[]): Node {
  const unclaimed = withoutClaim(node, claimOf('cattle', plan));
  return withoutCordonMark(
    isCordonedBy(node, plan, all) ? withoutAnyCordon(unclaimed) : unclaimed,
    plan,
  );
}
