/**
 * Turns a Plan into a rollout: determines which nodes the Plan selects, which of them are done, and which of them have
 * a slot.
 */
import { hash } from 'node:crypto';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { World } from '../../../engine/contract/world.ts';
import { controlsOn } from '../../../engine/model/controls.ts';
import { because, type Reason } from '../../../engine/model/reasons.ts';
import {
  inState,
  newTarget,
  type PlanImage,
  type RecordedState,
  type Rollout,
  type RolloutPhase,
  sourceOf,
  type Target,
  type TurnTime,
} from '../../../engine/model/rollout.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { parseGoDuration } from '../../../util/duration.ts';
import { onceForEach, onceForEachWith } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';
import { type Attempts, type Failures, recordedFailures, withoutFurtherNodes } from './attempts.ts';
import { conditionOf, holds, RESOLVED_TYPE } from './conditions.ts';
import { reportedVersion } from './installed-version.ts';
import { hostnameOf } from './job.ts';
import { isCordonedBy } from './job-cordons.ts';
import { isRecorded, type Latest, resolveLatest, type SecretLookup } from './latest.ts';
import { isHeld, markOf } from './leader-drain.ts';
import { CONTROL_PREFIX, DISABLED, hashLabelOf, selects } from './names.ts';
import { twinOf } from './node-occupant.ts';
import { attemptOn, upgradeOn } from './node-records.ts';
import { jobFor, jobsByNode, nodesAtWork, openJobs } from './plan-jobs.ts';
import { createPlanMemory, type TargetMemory } from './target-memory.ts';
import {
  rollBackOn,
  serverChecksOf,
  type VersionConfig,
  versionFieldsOf,
} from './version-rules.ts';
import { ABORTED_TYPE, afterJob, FAILURE_REASONS, hostOf, WAITING_TYPE } from './write-status.ts';

/** The parts that `resolve` uses besides the Plan and the world. */
interface Resources {
  readonly memory: TargetMemory;
  readonly config?: VersionConfig;
  /** Finds Secrets. Undefined in commands that may not read Secrets. */
  readonly secretOf?: SecretLookup;
  /** Remembers Jobs. Read-only commands have no such memory. */
  readonly attempts?: Attempts;
}

export function resolve(
  plan: CattlePlan,
  world: World,
  now: TurnTime,
  { memory, config = {}, secretOf, attempts }: Resources,
): Rollout {
  const judgement = resolveLatest(plan, secretOf);
  const targets = targetsOf({
    plan,
    world,
    now,
    judgement,
    memory,
    attempts,
    failures: recordedFailures(plan),
  });
  attempts?.keep(plan, inState({ targets }, 'intended'));
  const versions = versionFieldsOf(plan, judgement.version, config);
  return {
    source: { ...sourceOf(cattlePlans, plan), mark: markOf(plan.metadata) },
    id: judgement.hash,
    phase: phaseOf(plan, judgement, targets),
    blocked: conditionOf(plan, WAITING_TYPE) !== undefined,
    reason: reasonOf(plan, targets),
    ...rollBackOn(
      plan,
      world,
      targets,
      // An image that rolls back is often one that Refit does not know, so the version of the Plan counts then.
      versions.kubernetesVersion ?? reportedVersion(judgement.version),
    ),
    stages: [
      {
        id: 'nodes',
        command: 0,
        role: 'worker',
        lacksRoles: true,
        maxInFlight: plan.spec?.concurrency ?? 0,
        version: judgement.version,
        images: imagesOf(plan),
        ...versions,
        ...serverChecksOf(plan, judgement.version, world, config),
        forced: false,
        failedHoldSlots: true,
        restMs: (parseGoDuration(plan.spec?.postCompleteDelay ?? '') ?? 0) / 1e6,
        targets,
      },
    ],
    problems: judgement.problems,
  };
}

/**
 * Returns the images that the Plan runs on its nodes. The image in which kubectl drains is a setting of the controller,
 * so it is not an image of the Plan.
 */
export function imagesOf({ spec }: CattlePlan): PlanImage[] {
  return (['prepare', 'upgrade'] as const).flatMap((part) => {
    const image = spec?.[part]?.image ?? '';
    return image === '' ? [] : { field: `spec.${part}.image`, image };
  });
}

/**
 * Returns the phase. No phase is final: a new version, a new node, a corrected field or a removed abort annotation
 * starts the Plan again.
 */
function phaseOf(plan: CattlePlan, judgement: Latest, targets: readonly Target[]): RolloutPhase {
  const wasAborted = !isAborted(plan) && conditionOf(plan, ABORTED_TYPE) !== undefined;
  if (wasAborted || !isRecorded(plan, judgement) || !areRecorded(plan, targets)) return 'new';
  const isWorking = inState({ targets }, 'intended').length > 0;
  if (judgement.problems.length > 0) return isWorking ? 'running' : 'invalid';
  if (isAborted(plan) && !isWorking) return 'failed';
  const isComplete = conditionOf(plan, 'Complete')?.status === 'True';
  return isComplete && targets.every(({ state }) => state === 'done') ? 'done' : 'running';
}

/**
 * Returns true if the status lists every node on which a Job runs. If it does not, another
 * controller created the Job.
 */
function areRecorded(plan: CattlePlan, targets: readonly Target[]): boolean {
  const applying = new Set(plan.status?.applying);
  return inState({ targets }, 'intended').every((target) => applying.has(hostOf(target)));
}

function isAborted(plan: CattlePlan): boolean {
  return (
    controlsOn(plan, CONTROL_PREFIX).abort !== undefined &&
    conditionOf(plan, ABORTED_TYPE) !== undefined
  );
}

function reasonOf(plan: CattlePlan, targets: readonly Target[]): Reason | undefined {
  if (isAborted(plan)) return because('Aborted', conditionOf(plan, ABORTED_TYPE)?.message ?? '');
  const { reason, message: told = '' } = conditionOf(plan, 'Complete') ?? {};
  const message = withoutFurtherNodes(told);
  const isFailure =
    FAILURE_REASONS.has(reason) &&
    targets.some(({ state }) => state === 'failed' || state === 'unsupported');
  const [, named] = / on Node (\S+):/.exec(message) ?? [];
  const isOutdated =
    named !== undefined && !targets.some(({ name, state }) => name === named && state === 'failed');
  if (!isFailure || isOutdated) return undefined;
  // The condition leaves out the name of the node, by which the engine finds the reason of its failure.
  const later = afterJob(reason);
  if (later === undefined) return because('TargetFailed', message);
  return because(later, named === undefined ? message : `${named}: ${message}`);
}

interface Scene {
  readonly plan: CattlePlan;
  readonly world: World;
  readonly now: TurnTime;
  readonly judgement: Latest;
  readonly memory: TargetMemory;
  readonly failures: Failures;
  readonly attempts: Attempts | undefined;
}

function targetsOf(scene: Scene): readonly Target[] {
  const { plan, judgement, world, failures } = scene;
  const { hash, problems } = judgement;
  const targetOf = targetReader(scene);
  // A problem may depend on other objects, so the result for a Plan with a problem is not cached. The targets of a Plan
  // that exists only in a file are not cached either, because they have the time of the turn.
  const isKept = problems.length === 0 && resolvedAt(plan) !== undefined;
  const memory = isKept ? scene.memory.of(plan, hash) : createPlanMemory();
  const atNode = jobsByNode(world);
  const salt = `${plan.metadata.uid ?? ''}${hash}`;
  const targets = memory
    .sorted(world.list(nodes), (node) => rankOf(node, salt))
    .flatMap((node) => {
      const { name } = node.metadata;
      // The memory compares only the node and its Jobs. The target of a failed node also depends on the
      // recorded failure and on Jobs that this process has seen, so it is computed each time.
      const target = failures.nodes.has(name)
        ? targetOf(node)
        : memory.targetOf(node, atNode.get(name), targetOf);
      return target ?? [];
    });
  return memory.sameList(targets);
}

/** Returns a function that computes the target of a Node. The target is undefined if the Plan ignores the Node. */
function targetReader(scene: Scene): (node: Node) => Target | undefined {
  const { plan, judgement } = scene;
  const { concurrency = 0 } = plan.spec ?? {};
  const isSelected = (node: Node): boolean =>
    judgement.problems.length === 0 && selects(plan, node);
  const stateOf = stateReader(scene, isSelected);
  const momentOf = momentReader(scene);
  return (node) => {
    const state = stateOf(node);
    const isTarget =
      state === 'intended' || (isSelected(node) && (concurrency > 0 || state !== 'pending'));
    if (!isTarget) return undefined;
    const { name } = node.metadata;
    const fresh = newTarget({ key: keyOfNode(node), name }, scene.now);
    return { ...fresh, state, ...momentOf(node, state) };
  };
}

type Moment = Partial<Pick<Target, 'since' | 'lacksAttempt'>>;

/** Returns the time since which the nodes of the Plan have to be upgraded; undefined for a Plan that exists only in a file. */
function resolvedAt(plan: CattlePlan): string | undefined {
  return conditionOf(plan, RESOLVED_TYPE)?.lastUpdateTime ?? plan.metadata.creationTimestamp;
}

/** Returns a function that finds the recorded time of a target. The result is empty if nothing records a time. */
function momentReader({ plan, world, now, judgement, failures }: Scene) {
  const { hash } = judgement;
  const resolved = resolvedAt(plan);
  // If the condition `Complete` is True, its time is the time at which the rollout of the last version ended. If it is
  // False, its time is the time at which the rollout of this version started.
  const completed = conditionOf(plan, 'Complete')?.lastUpdateTime ?? resolved;
  const at = (since: string | undefined): Moment => (since === undefined ? {} : { since });
  return (node: Node, state: RecordedState): Moment => {
    const { name, creationTimestamp: created } = node.metadata;
    const job = jobFor(world, { id: hash }, name, plan);
    switch (state) {
      case 'intended': {
        const since = attemptOn(node, plan, hash)?.since;
        if (since !== undefined) return { since };
        const earliest = job?.metadata.creationTimestamp ?? later(created, resolved);
        return { ...at(earliest), lacksAttempt: true };
      }
      case 'done': {
        const ended = upgradeOn(node, plan, hash, now.valueOf())?.ended;
        return at(ended ?? job?.status?.completionTime ?? completed);
      }
      case 'failed':
      case 'unsupported':
        return at(failures.nodes.get(name)?.since);
      case 'pending':
      case 'missing':
      case 'skipped':
        return at(resolved);
    }
  };
}

function later(a: string | undefined, b: string | undefined): string | undefined {
  return Date.parse(a ?? '') > Date.parse(b ?? '') ? a : (b ?? a);
}

function stateReader(
  scene: Scene,
  isSelected: (node: Node) => boolean,
): (node: Node) => RecordedState {
  const { plan, world, judgement, failures } = scene;
  const { hash, problems } = judgement;
  const { latestHash } = plan.status ?? {};
  const applying = new Set(plan.status?.applying);
  const working = nodesAtWork(plan, world);
  const label = hashLabelOf(plan.metadata.name);
  return (node) => {
    const { name, labels = {} } = node.metadata;
    if (working.has(name)) return 'intended';
    // If the node has a slot for another version, a Job of that version may have changed the node. So the node needs a
    // new upgrade, even if its label has the hash of the present version. This is also true for a node that the Plan no
    // longer selects, because its cordon must be removed and its label is wrong.
    const isOutdated = latestHash !== hash && applying.has(hostnameOf(node));
    if (hash !== '' && ownMember(labels, label) === hash) return isOutdated ? 'intended' : 'done';
    // A failed node stays failed until its recorded failure is outdated.
    const failure = failures.nodes.get(name);
    if (failure) return latestHash !== hash || isOver(node, scene) ? 'pending' : failure.state;
    // The recorded hash may be that of an earlier version. A node whose label has that hash was done with the earlier version.
    if (!applying.has(hostnameOf(node)) || ownMember(labels, label) === latestHash)
      return 'pending';
    const own = openJobs(node, plan, world);
    const isBegun = own.length > 0 || isCordonedBy(node, plan, own);
    if (!isBegun && twinOf(world, { name, state: 'pending' })) return 'pending';
    if (isSelected(node)) return 'intended';
    // This is the case if the node was excluded while its Job ran, or if the Plan became invalid. Refit waits until the
    // Job has ended, because the Job may have cordoned the node.
    const job = jobFor(world, { id: hash }, name, plan);
    const isAnswered = ownMember(labels, label) !== DISABLED && job !== undefined && !isHeld(job);
    const endedWell = job ? holds(job, 'Complete') : !own.some((each) => holds(each, 'Failed'));
    return isAnswered || ((problems.length > 0 || endedWell) && isCordonedBy(node, plan, own))
      ? 'intended'
      : 'pending';
  };
}

/** Returns true if the recorded failure of the node is outdated, so that the node may be tried again. */
function isOver(node: Node, { plan, world, now, judgement, attempts, failures }: Scene): boolean {
  const { version, hash } = judgement;
  const job = jobFor(world, { id: hash }, node.metadata.name, plan);
  const isObsolete = job && attempts?.isObsolete(job, { plan, node, version, hash });
  return isObsolete ?? attempts?.isForgotten(node, plan, failures, now.valueOf()) ?? false;
}

const keyOfNode = onceForEach((node: Node) => `${hostnameOf(node)}/${node.metadata.name}`);

/**
 * Returns the rank of a node. The order by rank looks random, and is always the same for one Plan and hash. The rank has 13 hexadecimal
 * digits, which a number can represent exactly.
 */
const rankOf = onceForEachWith(({ metadata }: Node, salt) =>
  Number.parseInt(hash('sha256', `${metadata.uid ?? ''}${salt}`).slice(0, 13), 16),
);
