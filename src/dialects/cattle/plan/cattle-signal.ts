/** Sends a Job to each node, reads its conditions as the answer, and labels the node when it is done. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cordonOwner, readOwner, withoutAnyCordon } from '../../../drain/cordon-marks.ts';
import type { Signal, World } from '../../../engine/contract/dialect.ts';
import type { Observation, Obstacle, UnnamedCordon } from '../../../engine/model/decision.ts';
import { isFinal, type Rollout, type Stage, type Target } from '../../../engine/model/rollout.ts';
import {
  type Condition,
  type Job,
  jobs,
  type Node,
  nodes,
  withoutAnnotations,
} from '../../../kube/resources.ts';
import { claimOf, otherClaimantOn, signallerOf, withoutClaim } from '../../../signal/at-work.ts';
import { onceForEach, onceForEachWith } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';
import { listed } from '../../../util/phrases.ts';
import { type Attempts, withMachine } from './attempts.ts';
import { holds } from './conditions.ts';
import type { CattleConfig } from './config.ts';
import { jobNamesOf, jobOf } from './job.ts';
import {
  CORDONS,
  cordonsIn,
  isCordonedBy,
  unnamedCordonOn,
  withCordonMark,
  withoutCordonMark,
} from './job-cordons.ts';
import { isCordonOf, isHeld } from './leader-drain.ts';
import * as names from './names.ts';
import { stallOf } from './pods.ts';
import { STAMP_ANNOTATION } from './stamps.ts';

/** The settings of Jobs are those of one controller: read-only commands, which lack them, believe what is recorded. */
export function jobSignal(config: CattleConfig, attempts?: Attempts): Signal<CattlePlan> {
  const drainsHere = !config.job.drainInJob;
  const { namespace } = config;
  const planOf = ({ source: { name, uid } }: Rollout): CattlePlan => ({
    metadata: { name, uid, namespace },
  });
  return {
    read(world, rollout, { version, restMs = 0 }, { name, state }, plan) {
      if (state === 'done') return NOTHING;
      const [job, node] = [ownJob(world, rollout, name, plan, attempts), world.get(nodes, name)];
      if (job && node && attempts?.isObsolete(job, { plan, node, version, hash: rollout.id }))
        return NOTHING;
      if (job && isSuperseded(job, jobsOn(name, plan, world))) return NOTHING;
      if (job && isFinal(rollout) && !node)
        return { kind: 'working', step: 'Gone', cancellable: true, ...timesOf(job) };
      if (job && isHeld(job))
        return state === 'intended' && (drainsHere || isFinal(rollout))
          ? awaitingDrain(job)
          : NOTHING;
      if (job && !isPaused(job)) {
        const isCordoned =
          restMs > 0 && node && isCordonedBy(node, plan, openOn(node, plan, world, job));
        const completion = isCordoned && holds(job, 'Complete');
        if (!completion) return observe(job, stallOf(job, world) ?? '');
        return {
          kind: 'working',
          step: 'Complete',
          waitsFor: 'uncordon',
          ...timesOf(job, completion),
        };
      }
      const earlier =
        state === 'intended' ? jobsOn(name, plan, world).find(isUnfinished) : undefined;
      if (earlier) {
        const step = `the earlier Job for ${earlier.metadata.labels?.[names.VERSION_LABEL] ?? 'an earlier version'}`;
        return { kind: 'working', step, ...timesOf(earlier) };
      }
      if (state !== 'intended' || !node) return NOTHING;
      // The record removes a label that is wrong: until then nothing is over.
      if (names.hashOn(node, plan) === rollout.id) return NOTHING;
      return !isFinal(rollout) && isLeftOut(world, rollout, node, plan) ? LEFT_OUT : NOTHING;
    },

    observable: jobsByNode,

    remember(world, { id }, _stage, target, plan) {
      const node = world.get(nodes, target.name);
      const [last] = latestJobsOn(target.name, plan, world);
      const isAgain = node && target.state === 'intended' && names.hashOn(node, plan) === id;
      const marked =
        node && withCordonMark(isAgain ? withoutLabel(node, plan) : node, plan, target, last);
      return marked && marked !== node
        ? { kind: 'replace', resource: nodes, object: marked }
        : undefined;
    },

    send(world, rollout, { stage, target }, plan) {
      const node = world.get(nodes, target.name);
      if (!node || rollout.problems.length > 0) return undefined;
      const job = jobFor(world, rollout, target.name, plan);
      if (job && isPaused(job))
        return { kind: 'replace', resource: jobs, object: withSpec(job, { parallelism: 1 }) };
      // The Job of an earlier attempt has the name of the next one.
      if (job) return { kind: 'delete', resource: jobs, object: job };
      const name = freeName(world, target.name, plan, rollout);
      const { version } = stage;
      const rendered = jobOf(config, {
        plan,
        node,
        name,
        version,
        hash: rollout.id,
        settings: config.job,
      });
      return { kind: 'create', resource: jobs, object: withMachine(rendered, node) };
    },

    /** Starts the Job after the drain. Later uncordons, while the node keeps its slot for the rest of `postCompleteDelay`. */
    acknowledge(world, rollout, _stage, { name }) {
      const job = jobFor(world, rollout, name, planOf(rollout));
      if (job && isHeld(job))
        return { kind: 'replace', resource: jobs, object: withSpec(job, { suspend: false }) };
      const node = world.get(nodes, name);
      return node && { kind: 'replace', resource: nodes, object: withoutAnyCordon(node) };
    },

    /** Only a held Job can be cancelled, and one whose node was deleted. */
    cancel(world, rollout, _stage, { name }) {
      const job = jobFor(world, rollout, name, planOf(rollout));
      return job && { kind: 'delete', resource: jobs, object: job };
    },

    finish(world, rollout, stage, { name }, plan) {
      const node = world.get(nodes, name);
      if (!node) return undefined;
      const free = freed(
        node,
        plan,
        openOn(node, plan, world, ownJob(world, rollout, name, plan, attempts)),
      );
      const isLeft = isLeftOut(world, rollout, node, plan);
      const object = isLeft ? free : finished(free, plan, rollout.id, stage.version);
      return { kind: 'replace', resource: nodes, object };
    },
  };
}

/** Its Job could run on the other Node: Jobs are placed by the host name, which the status lists, too. */
export function twinOf(
  world: World,
  { name, state }: Pick<Target, 'name' | 'state'>,
): Obstacle | undefined {
  const host = world.get(nodes, name)?.metadata.labels?.[names.HOSTNAME_LABEL];
  const twins =
    (host !== undefined && state !== 'done' && nodesByHost(world.list(nodes)).get(host)) || [];
  if (twins.length < 2) return undefined;
  const all = listed(twins.map(({ metadata }) => metadata.name));
  const message = `the Nodes ${all} have the same label ${names.HOSTNAME_LABEL}=${host}`;
  return { message, ends: 'each of them has its own value' };
}

const nodesByHost = onceForEach((all: readonly Node[]) =>
  Map.groupBy(all, ({ metadata }) => metadata.labels?.[names.HOSTNAME_LABEL]),
);

/** Also one that is gone, as long as no other came after it. */
function ownJob(
  world: World,
  rollout: Rollout,
  nodeName: string,
  plan: CattlePlan,
  attempts: Attempts | undefined,
) {
  const [present, all] = [jobFor(world, rollout, nodeName, plan), jobsOn(nodeName, plan, world)];
  if (!attempts || (present && isSuperseded(present, all))) return present;
  const job = attempts.recalled(plan, nodeName, rollout.id, present);
  return job && !isSuperseded(job, all) ? job : undefined;
}

/** Those that may have cordoned the node. */
function openOn(node: Node, plan: CattlePlan, world: World, own: Job | undefined): readonly Job[] {
  const all = openJobs(node, plan, world);
  return own && !all.includes(own) ? [...all, own] : all;
}

/** Those whose end its label does not tell. */
export function openJobs(node: Node, plan: CattlePlan, world: World): readonly Job[] {
  return jobsOn(node.metadata.name, plan, world).filter(
    (job) => names.hashOn(job, plan) !== names.hashOn(node, plan),
  );
}

/** Another Plan, also of another namespace, or a plan of another dialect. */
export function occupantOf(
  world: World,
  target: Target,
  plan: CattlePlan,
): string | Obstacle | undefined {
  const { name, state } = target;
  const twin = twinOf(world, target);
  if (state === 'done' || twin) return twin;
  const atWork = jobsAt(world, name).filter((job) => isUnfinished(job) || isHeld(job));
  const other = atWork.find((job) => isOfSomePlan(job) && !isOf(job, plan));
  if (other) return `Plan ${other.metadata.namespace}/${other.metadata.labels?.[names.PLAN_LABEL]}`;
  const node = world.get(nodes, name);
  if (!node) return undefined;
  const claimant = otherClaimantOn(node, plan);
  if (claimant !== undefined) return claimant;
  const [signaller, owner] = [signallerOf(node), cordonOwner(node)];
  if (signaller !== undefined) return `plan ${signaller}, which signalled it,`;
  const isForeign =
    node.spec?.unschedulable === true && owner !== undefined && !isCordonOf(node, plan);
  return isForeign ? `plan ${readOwner(owner)?.plan}, which cordoned it,` : undefined;
}

/** Kubernetes deletes a Job that names a Plan which is not in its namespace, so nobody else can hold up a node. */
export function isOfSomePlan({ metadata }: Job): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ kind, apiVersion }) => kind === 'Plan' && apiVersion.startsWith('upgrade.cattle.io/'),
  );
}

export function jobFor(
  world: World,
  { id }: Pick<Rollout, 'id'>,
  nodeName: string,
  plan: CattlePlan,
): Job | undefined {
  return jobsAt(world, nodeName).find((job) => isNamedFor(job, id) && isOf(job, plan));
}

export function jobsOn(nodeName: string, plan: CattlePlan, world: World): readonly Job[] {
  return jobsAt(world, nodeName).filter((job) => isOf(job, plan));
}

/** The last one first. */
function latestJobsOn(nodeName: string, plan: CattlePlan, world: World): readonly Job[] {
  return jobsOn(nodeName, plan, world).toSorted((a, b) => createdAt(b).localeCompare(createdAt(a)));
}

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

/** True for one that ended, and after which the node got another one: going back to its version is a new upgrade. */
function isSuperseded(job: Job, all: readonly Job[]): boolean {
  return (
    isOver(job) && all.some((other) => isUnfinished(other) || createdAt(other) > createdAt(job))
  );
}

const createdAt = ({ metadata }: Job): string => metadata.creationTimestamp ?? '';

/** The original's name, unless the Job of a node whose name agrees up to the first dot has it. */
function freeName(
  world: World,
  nodeName: string,
  { metadata }: CattlePlan,
  { id }: Rollout,
): string | undefined {
  const [name, longer] = jobNamesOf(metadata.name, nodeName, id);
  const present = world.get(jobs, name, metadata.namespace);
  return present && nodeOf(present) !== nodeName ? longer : name;
}

export function jobsAt(world: World, nodeName: string): readonly Job[] {
  return jobsByNode(world).get(nodeName) ?? [];
}

export function jobsByNode(world: World): ReadonlyMap<string | undefined, readonly Job[]> {
  return byNode(world.list(jobs));
}

const byNode = onceForEach((all: readonly Job[]) => Map.groupBy(all, nodeOf));

function nodeOf({ metadata }: Job): string | undefined {
  return metadata.labels?.[names.NODE_LABEL];
}

const isNamedFor = onceForEachWith((job: Job, hash) =>
  jobNamesOf(job.metadata.labels?.[names.PLAN_LABEL] ?? '', nodeOf(job) ?? '', hash).includes(
    job.metadata.name,
  ),
);

/** The original creates Jobs paused and then starts them: a paused Job has not started anything. */
export function isPaused({ spec }: Job): boolean {
  return spec?.['parallelism'] === 0;
}

/** The nodes of Jobs of this plan, for any hash, that started and have neither failed nor completed. */
export function nodesAtWork(plan: CattlePlan, world: World): ReadonlySet<string | undefined> {
  return new Set(
    unfinished(world.list(jobs)).flatMap((job) => (isOf(job, plan) ? nodeOf(job) : [])),
  );
}

const unfinished = onceForEach((all: readonly Job[]) => all.filter(isUnfinished));

export const isUnfinished = onceForEach(
  (job: Job) => !isPaused(job) && !isHeld(job) && !isOver(job),
);

const isOver = (job: Job): boolean =>
  (holds(job, 'Complete') ?? holds(job, 'Failed')) !== undefined;

/** False for the Jobs of a deleted plan of the same name. */
function isOf({ metadata }: Job, plan: CattlePlan): boolean {
  if (
    metadata.labels?.[names.PLAN_LABEL] !== plan.metadata.name ||
    metadata.namespace !== plan.metadata.namespace
  )
    return false;
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === plan.metadata.uid);
}

const NOTHING: Observation = { kind: 'none' };
/** It gets no other Job: only its cordon ends. */
const LEFT_OUT: Observation = { kind: 'succeeded', attempt: '', since: '' };

const awaitingDrain = onceForEach((job: Job): Observation => {
  return { kind: 'working', step: 'Drain', waitsFor: 'drain', cancellable: true, ...timesOf(job) };
});

function withSpec(job: Job, change: NonNullable<Job['spec']>): Job {
  return { ...job, spec: { ...job.spec, ...change } };
}

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
  const step = job.spec?.['suspend'] === true ? 'Suspended' : begun;
  return { kind: 'working', step, stalled, ...timesOf(job) };
});

function timesOf(
  { metadata, status }: Job,
  condition?: Condition,
): { attempt: string; since: string } {
  const { creationTimestamp: attempt = '' } = metadata;
  return { attempt, since: condition?.lastTransitionTime ?? status?.startTime ?? attempt };
}

/** True for a node that has no Job of this version, and is to have none. */
function isLeftOut(world: World, rollout: Rollout, node: Node, plan: CattlePlan): boolean {
  if (rollout.problems.length > 0 || names.selects(plan, node)) return false;
  return jobFor(world, rollout, node.metadata.name, plan) === undefined;
}

/** Adds the plan's labels, the hash label last, unless the node was left out meanwhile. */
function finished(node: Node, plan: CattlePlan, hash: string, version: string): Node {
  const { metadata, spec } = plan;
  const own = names.expandedLabels(spec?.postCompleteLabels, version, hash);
  const before = node.metadata.labels ?? {};
  const label = names.hashLabelOf(metadata.name);
  const labels =
    ownMember(before, label) === names.DISABLED ? before : { ...before, ...own, [label]: hash };
  return { ...node, metadata: { ...node.metadata, labels } };
}

/** Of one that gets the version of its label again: until then the label would be wrong. */
function withoutLabel(node: Node, { metadata }: CattlePlan): Node {
  const label = names.hashLabelOf(metadata.name);
  const others = Object.entries(node.metadata.labels ?? {}).filter(([key]) => key !== label);
  const labels = Object.fromEntries(others);
  return { ...node, metadata: { ...node.metadata, labels } };
}

export function freed(node: Node, plan: CattlePlan, all: readonly Job[]): Node {
  const unclaimed = withoutClaim(node, claimOf('cattle', plan));
  return withoutCordonMark(
    isCordonedBy(node, plan, all) ? withoutAnyCordon(unclaimed) : unclaimed,
    plan,
  );
}

/** What the cache keeps of it: templates are most of its size. A paused Job is written back as a whole, and the stamp of a failed one is compared. */
export function trimJob(job: Job): Job {
  if (isPaused(job) || isHeld(job) || holds(job, 'Failed')) return job;
  const { template: _t, selector: _s, ...spec } = job.spec ?? {};
  const kept = cordonsIn(job) ? { ...spec, template: CORDONS } : spec;
  return { ...withoutAnnotations(job, STAMP_ANNOTATION), spec: kept };
}
