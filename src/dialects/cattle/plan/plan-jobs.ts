/** Finds the Jobs of a plan or a node, and determines the state of each Job. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { Rollout } from '../../../engine/model/rollout.ts';
import { type Job, jobs, type Node, withoutAnnotations } from '../../../kube/resources.ts';
import { onceForEach, onceForEachWith } from '../../../util/memo.ts';
import { holds } from './conditions.ts';
import { jobNamesOf } from './job.ts';
import { CORDONS, cordonsItself } from './job-cordons.ts';
import { isHeld } from './leader-drain.ts';
import * as names from './names.ts';
import { STAMP_ANNOTATION } from './stamps.ts';

/** Returns the Job of the plan for a node with the hash of the rollout; undefined if there is none. */
export function jobFor(
  world: World,
  { id }: Pick<Rollout, 'id'>,
  nodeName: string,
  plan: CattlePlan,
): Job | undefined {
  return jobsAt(world, nodeName).find((job) => isNamedFor(job, id) && isOf(job, plan));
}

/** Returns the Jobs of the plan for a node, with any hash. */
export function jobsOn(nodeName: string, plan: CattlePlan, world: World): readonly Job[] {
  return jobsAt(world, nodeName).filter((job) => isOf(job, plan));
}

/** Returns the Jobs of the plan for a node, the newest first. */
export function latestJobsOn(nodeName: string, plan: CattlePlan, world: World): readonly Job[] {
  return jobsOn(nodeName, plan, world).toSorted((a, b) => createdAt(b).localeCompare(createdAt(a)));
}

/**
 * Returns true if the Job has ended and the node got another Job afterwards. Such a Job is ignored: if the plan returns
 * to the version of this Job, the plan starts a new upgrade.
 */
export function isSuperseded(job: Job, all: readonly Job[]): boolean {
  return (
    isOver(job) && all.some((other) => isUnfinished(other) || createdAt(other) > createdAt(job))
  );
}

const createdAt = ({ metadata }: Job): string => metadata.creationTimestamp ?? '';

/** Returns the Jobs of the plan for the node, except the Job with the hash of the node's hash label, which is finished. */
export function openJobs(node: Node, plan: CattlePlan, world: World): readonly Job[] {
  return jobsOn(node.metadata.name, plan, world).filter(
    (job) => names.hashOn(job, plan) !== names.hashOn(node, plan),
  );
}

/** Returns the Jobs of all plans for a node. */
export function jobsAt(world: World, nodeName: string): readonly Job[] {
  return jobsByNode(world).get(nodeName) ?? [];
}

/** Returns all Jobs, grouped by the name of their node. */
export function jobsByNode(world: World): ReadonlyMap<string | undefined, readonly Job[]> {
  return byNode(world.list(jobs));
}

const byNode = onceForEach((all: readonly Job[]) => Map.groupBy(all, nodeOf));

/** Returns the name of the node for which the Job was made. */
export function nodeOf({ metadata }: Job): string | undefined {
  return metadata.labels?.[names.NODE_LABEL];
}

const isNamedFor = onceForEachWith((job: Job, hash) =>
  jobNamesOf(job.metadata.labels?.[names.PLAN_LABEL] ?? '', nodeOf(job) ?? '', hash).includes(
    job.metadata.name,
  ),
);

/**
 * Returns true if the Job is paused, so that none of its pods has been created. The original controller creates its
 * Jobs paused and starts them later.
 */
export function isPaused({ spec }: Job): boolean {
  return spec?.['parallelism'] === 0;
}

/** Returns the names of the nodes with a Job of this plan, for any hash, that has started and not ended. */
export function nodesAtWork(plan: CattlePlan, world: World): ReadonlySet<string | undefined> {
  return new Set(
    unfinished(world.list(jobs)).flatMap((job) => (isOf(job, plan) ? nodeOf(job) : [])),
  );
}

const unfinished = onceForEach((all: readonly Job[]) => all.filter(isUnfinished));

/** Returns true if the Job has started and has neither failed nor completed. */
export const isUnfinished = onceForEach(
  (job: Job) => !isPaused(job) && !isHeld(job) && !isOver(job),
);

const isOver = (job: Job): boolean =>
  (holds(job, 'Complete') ?? holds(job, 'Failed')) !== undefined;

/**
 * Returns true if the plan owns the Job. Returns false for a Job of a deleted plan with the same
 * name.
 */
export function isOf({ metadata }: Job, plan: CattlePlan): boolean {
  if (
    metadata.labels?.[names.PLAN_LABEL] !== plan.metadata.name ||
    metadata.namespace !== plan.metadata.namespace
  )
    return false;
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === plan.metadata.uid);
}

/**
 * Returns the part of a Job that the cache keeps. The template, which has most of the bytes, and the stamp are left
 * out. A paused or held Job is kept as a whole, because Refit writes it back. A failed Job is kept as a whole, because
 * Refit compares its stamp.
 */
export function trimJob(job: Job): Job {
  if (isPaused(job) || isHeld(job) || holds(job, 'Failed')) return job;
  const { template: _t, selector: _s, ...spec } = job.spec ?? {};
  const kept = cordonsItself(job) ? { ...spec, template: CORDONS } : spec;
  return { ...withoutAnnotations(job, STAMP_ANNOTATION), spec: kept };
}
