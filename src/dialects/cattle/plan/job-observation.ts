/** Determines from the Job of a target, and from its Node, which state the upgrade of the target has reached. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { World } from '../../../engine/contract/world.ts';
import type { Observation } from '../../../engine/model/facts.ts';
import { isFinal, type Rollout, type Stage, type Target } from '../../../engine/model/rollout.ts';
import { lackOfPods } from '../../../kube/podless-jobs.ts';
import { type Condition, type Job, type Node, nodes } from '../../../kube/resources.ts';
import { onceForEach, onceForEachWith } from '../../../util/memo.ts';
import { counted } from '../../../util/phrases.ts';
import type { Attempts } from './attempts.ts';
import { holds } from './conditions.ts';
import { isCordonedBy } from './job-cordons.ts';
import { isHeld } from './leader-drain.ts';
import * as names from './names.ts';
import { successOn } from './node-records.ts';
import {
  isPaused,
  isSuperseded,
  isUnfinished,
  jobFor,
  jobsOn,
  nodeOf,
  openJobs,
} from './plan-jobs.ts';
import { stallOf } from './pods.ts';

export interface JobQuestion {
  readonly world: World;
  readonly rollout: Rollout;
  readonly stage: Stage;
  readonly target: Target;
  readonly plan: CattlePlan;
  /** The memory of Jobs; undefined in read-only commands, which use the recorded state instead. */
  readonly attempts: Attempts | undefined;
  /** True if the leader drains the nodes; false if the Jobs do. */
  readonly drainsHere: boolean;
}

/** Returns the observation of the target for this rollout. Its kind is `none` if there is nothing to observe yet. */
export function observationOf(question: JobQuestion): Observation {
  const { world, rollout, stage, target, plan, attempts, drainsHere } = question;
  const { version } = stage;
  const { name, state } = target;
  if (state === 'done') return NOTHING;
  const job = ownJob(world, rollout, name, plan, attempts);
  const node = world.get(nodes, name);
  if (job && node && attempts?.isObsolete(job, { plan, node, version, hash: rollout.id }))
    return NOTHING;
  if (job && isSuperseded(job, jobsOn(name, plan, world))) return NOTHING;
  if (job && isFinal(rollout) && !node)
    return { kind: 'working', step: 'Gone', cancellable: true, ...timesOf(job) };
  if (job && isHeld(job))
    return state === 'intended' && (drainsHere || isFinal(rollout)) ? awaitingDrain(job) : NOTHING;
  if (job && !isPaused(job)) return observedStarted(job, question, node);
  const earlier = state === 'intended' ? jobsOn(name, plan, world).find(isUnfinished) : undefined;
  if (earlier) {
    const step = `the earlier Job for ${earlier.metadata.labels?.[names.VERSION_LABEL] ?? 'an earlier version'}`;
    return { kind: 'working', step, ...timesOf(earlier) };
  }
  if (state !== 'intended' || !node) return NOTHING;
  // The hash label says that the node is done, but the target is recorded as intended, so the label is wrong. The
  // target has no observation until the next record has removed the label.
  if (names.hashOn(node, plan) === rollout.id) return NOTHING;
  // Kubernetes has deleted the Job, but the Node says that the Job succeeded.
  const success = job ? undefined : successOn(node, plan, rollout.id, target);
  if (success)
    return (
      awaitingUncordon(success, question, node, undefined) ?? { kind: 'succeeded', ...success }
    );
  return !isFinal(rollout) && isLeftOut(world, rollout, node, plan) ? LEFT_OUT : NOTHING;
}

/** Returns what a started Job reports. */
function observedStarted(job: Job, question: JobQuestion, node: Node | undefined): Observation {
  const { world, plan, rollout, target } = question;
  const completion = holds(job, 'Complete');
  if (!completion || !node) return observe(job, stallOf(job, world) ?? podless(job, plan) ?? '');
  const seen = awaitingUncordon(timesOf(job, completion), question, node, job) ?? observe(job, '');
  const isKept =
    target.state !== 'intended' || successOn(node, plan, rollout.id, target) !== undefined;
  return isKept || seen.kind === 'none' ? seen : { ...seen, isUnkept: true };
}

/** Returns why the Job has no pod; undefined if it has one, or is not to have one yet. */
function podless(job: Job, { spec }: CattlePlan): string | undefined {
  const lack = lackOfPods(job, spec?.serviceAccountName);
  return lack && `its Job ${lack}`;
}

/**
 * Returns the observation of a node whose Job has succeeded and which must be uncordoned; undefined if the success can
 * be reported. If the stage has a pause after each Job (`restMs`), or if the version of the kubelet is verified, a
 * success is reported only after the node is uncordoned. `own` is the Job; undefined if it was deleted.
 */
function awaitingUncordon(
  times: { readonly attempt: string; readonly since: string },
  { world, plan, stage }: JobQuestion,
  node: Node,
  own: Job | undefined,
): Observation | undefined {
  const { restMs = 0, kubernetesVersion } = stage;
  const isVerified = kubernetesVersion !== undefined;
  const isFirst = restMs > 0 || isVerified;
  if (!isFirst || !isCordonedBy(node, plan, openOn(node, plan, world, own))) return undefined;
  const hasEnded = isVerified ? { hasEnded: true as const } : {};
  return { kind: 'working', step: 'Complete', waitsFor: 'uncordon', ...hasEnded, ...times };
}

/**
 * Returns the Job of the rollout for a node, even if the Job was deleted. Returns undefined if there is no such Job.
 * Also returns undefined if the Job was deleted and the node got another Job afterwards.
 */
export function ownJob(
  world: World,
  rollout: Rollout,
  nodeName: string,
  plan: CattlePlan,
  attempts: Attempts | undefined,
) {
  const present = jobFor(world, rollout, nodeName, plan);
  const all = jobsOn(nodeName, plan, world);
  if (!attempts || (present && isSuperseded(present, all))) return present;
  const job = attempts.recalled(plan, nodeName, rollout.id, present);
  return job && !isSuperseded(job, all) ? job : undefined;
}

/** Returns the Jobs of the plan that may have cordoned the node. */
export function openOn(
  node: Node,
  plan: CattlePlan,
  world: World,
  own: Job | undefined,
): readonly Job[] {
  const all = openJobs(node, plan, world);
  return own && !all.includes(own) ? [...all, own] : all;
}

const NOTHING: Observation = { kind: 'none' };
/** The observation of a node that gets no further Job. The work on the target ends, and only the cordon is removed. */
const LEFT_OUT: Observation = { kind: 'succeeded', attempt: '', since: '' };

const awaitingDrain = onceForEach((job: Job): Observation => {
  return { kind: 'working', step: 'Drain', waitsFor: 'drain', cancellable: true, ...timesOf(job) };
});

const observe = onceForEachWith((job: Job, stall): Observation => {
  const { name, namespace } = job.metadata;
  const stalled = stall === '' ? undefined : stall;
  const failure = holds(job, 'Failed');
  if (failure) {
    const why = `${failure.reason ?? ''}: ${failure.message ?? ''}`;
    const message = `Job ${namespace}/${name} failed on Node ${nodeOf(job)}: ${why}`;
    return { kind: 'failed', ...timesOf(job, failure), message };
  }
  const completion = holds(job, 'Complete');
  if (completion) return { kind: 'succeeded', ...timesOf(job, completion) };
  const begun = (job.status?.active ?? 0) > 0 && stalled === undefined ? 'Running' : 'Starting';
  const step = job.spec?.['suspend'] === true ? 'Suspended' : `${begun}${afterFailures(job)}`;
  return { kind: 'working', step, stalled, ...timesOf(job) };
});

/**
 * Returns a clause about the pods of the Job that failed; empty if none did. Kubernetes replaces a failed pod without a
 * word, until the backoff limit of the Job is reached. So without this clause, such a Job would look like a Job that works.
 */
function afterFailures({ status: { failed = 0 } = {} }: Job): string {
  return failed === 0 ? '' : `, after ${counted(failed, 'failed pod')}`;
}

function timesOf(
  { metadata, status }: Job,
  condition?: Condition,
): { attempt: string; since: string } {
  const { creationTimestamp: attempt = '' } = metadata;
  return { attempt, since: condition?.lastTransitionTime ?? status?.startTime ?? attempt };
}

/** Returns true for a node that the Plan no longer selects and that has no Job of this version. */
export function isLeftOut(world: World, rollout: Rollout, node: Node, plan: CattlePlan): boolean {
  if (rollout.problems.length > 0 || names.selects(plan, node)) return false;
  return jobFor(world, rollout, node.metadata.name, plan) === undefined;
}
