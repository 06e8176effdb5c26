/** Turns a Plan into a rollout: which nodes are selected, done, or hold a slot. */
import { hash } from 'node:crypto';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { World } from '../../../engine/contract/world.ts';
import { controlsOn } from '../../../engine/model/controls.ts';
import { because, type Reason } from '../../../engine/model/reasons.ts';
import {
  inState,
  type RecordedState,
  type Rollout,
  type RolloutPhase,
  sourceOf,
  type Target,
} from '../../../engine/model/rollout.ts';
import { type Job, type Node, nodes } from '../../../kube/resources.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { parseGoDuration } from '../../../util/duration.ts';
import { sameJson } from '../../../util/json.ts';
import { onceForEach, onceForEachWith } from '../../../util/memo.ts';
import { ownMember } from '../../../util/own-member.ts';
import { type Attempts, type Failures, recordedFailures } from './attempts.ts';
import { conditionOf, holds } from './conditions.ts';
import { hostnameOf } from './job.ts';
import { isCordonedBy } from './job-cordons.ts';
import { isRecorded, type Latest, resolveLatest, type SecretLookup } from './latest.ts';
import { isHeld, markOf } from './leader-drain.ts';
import { CONTROL_PREFIX, DISABLED, hashLabelOf, selects } from './names.ts';
import { twinOf } from './node-occupant.ts';
import { jobFor, jobsByNode, nodesAtWork, openJobs } from './plan-jobs.ts';
import { ABORTED_TYPE, hostOf, WAITING_TYPE } from './write-status.ts';

type Knowledge = { readonly secretOf?: SecretLookup; readonly attempts?: Attempts };

export function resolve(
  plan: CattlePlan,
  world: World,
  now: number,
  { secretOf, attempts }: Knowledge,
): Rollout {
  const judgement = resolveLatest(plan, secretOf);
  const targets = targetsOf({
    plan,
    world,
    now,
    judgement,
    attempts,
    failures: recordedFailures(plan),
  });
  attempts?.keep(plan, inState({ targets }, 'intended'));
  return {
    source: { ...sourceOf(cattlePlans, plan), mark: markOf(plan.metadata) },
    id: judgement.hash,
    phase: phaseOf(plan, judgement, targets),
    blocked: conditionOf(plan, WAITING_TYPE) !== undefined,
    reason: reasonOf(plan, targets),
    stages: [
      {
        id: 'nodes',
        command: 0,
        role: 'worker',
        maxInFlight: plan.spec?.concurrency ?? 0,
        version: judgement.version,
        forced: false,
        failedHoldSlots: true,
        restMs: (parseGoDuration(plan.spec?.postCompleteDelay ?? '') ?? 0) / 1e6,
        targets,
      },
    ],
    problems: judgement.problems,
  };
}

/** No phase is final: a new version, a new node, a corrected field or a removed abort annotation starts the Plan again. */
function phaseOf(plan: CattlePlan, judgement: Latest, targets: readonly Target[]): RolloutPhase {
  const wasAborted = !isAborted(plan) && conditionOf(plan, ABORTED_TYPE) !== undefined;
  if (wasAborted || !isRecorded(plan, judgement) || !areRecorded(plan, targets)) return 'new';
  const isWorking = inState({ targets }, 'intended').length > 0;
  if (judgement.problems.length > 0) return isWorking ? 'running' : 'invalid';
  if (isAborted(plan) && !isWorking) return 'failed';
  const isComplete = conditionOf(plan, 'Complete')?.status === 'True';
  return isComplete && targets.every(({ state }) => state === 'done') ? 'done' : 'running';
}

/** False for a Job that runs, and that the status does not tell of: another controller made it. */
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
  const { reason, message = '' } = conditionOf(plan, 'Complete') ?? {};
  const isFailure =
    (reason === 'JobFailed' || reason === 'ValidationFailed') &&
    targets.some(({ state }) => state === 'failed' || state === 'unsupported');
  const [, named] = / on Node (\S+):/.exec(message) ?? [];
  const isOutdated =
    named !== undefined && !targets.some(({ name, state }) => name === named && state === 'failed');
  return isFailure && !isOutdated ? because('TargetFailed', message) : undefined;
}

interface Scene {
  readonly plan: CattlePlan;
  readonly world: World;
  readonly now: number;
  readonly judgement: Latest;
  readonly failures: Failures;
  readonly attempts: Attempts | undefined;
}

function targetsOf(scene: Scene): readonly Target[] {
  const { plan, judgement, world, failures, now } = scene;
  const { hash, problems } = judgement;
  const time = rfc3339(now);
  const targetOf = targetReader(scene, time);
  // What is wrong may stand elsewhere: nothing is kept.
  const known = knownOf(problems.length === 0 ? plan : { ...plan }, hash);
  const atNode = jobsByNode(world);
  const targets = inOrder(known, world.list(nodes), `${plan.metadata.uid ?? ''}${hash}`).flatMap(
    (node) => {
      const { name } = node.metadata;
      const own = atNode.get(name);
      const last = known.targets.get(node);
      const isSame =
        last && sameJson(last.own, own) && (last.time === time || last.target?.since !== last.time);
      if (isSame) return last.target ?? [];
      const target = targetOf(node);
      // What depends on more than the node, its Jobs and the time is not kept.
      if (!failures.nodes.has(name)) known.targets.set(node, { own, time, target });
      return target ?? [];
    },
  );
  const isSame =
    targets.length === known.all.length &&
    targets.every((target, place) => target === known.all[place]);
  if (!isSame) known.all = targets;
  return known.all;
}

/** What the last decision on this version of a Plan found: most nodes are as they were. Keeps no Node that is gone or outdated. */
interface Known {
  uids: readonly (string | undefined)[];
  places: readonly number[];
  readonly targets: WeakMap<
    Node,
    { own: readonly Job[] | undefined; time: string; target: Target | undefined }
  >;
  /** The same list until one changes: what depends on all of them is computed once for it. */
  all: readonly Target[];
}

const knownOf = onceForEachWith(
  (_plan: CattlePlan, _hash): Known => ({ uids: [], places: [], targets: new WeakMap(), all: [] }),
);

/** Random, but always the same for a plan and hash. Sorts again only where nodes came or went. */
function inOrder(known: Known, all: readonly Node[], salt: string): readonly Node[] {
  const uids = all.map(({ metadata }) => metadata.uid);
  if (!sameJson(known.uids, uids)) {
    const ranks = all.map((node) => rankOf(node, salt));
    known.uids = uids;
    known.places = [...all.keys()].toSorted((a, b) => (ranks[a] ?? 0) - (ranks[b] ?? 0));
  }
  return known.places.map((place) => all[place] as Node);
}

/** Reads the target of a Node; undefined for a Node that the Plan leaves alone. */
function targetReader(scene: Scene, time: string): (node: Node) => Target | undefined {
  const { plan, judgement } = scene;
  const { concurrency = 0 } = plan.spec ?? {};
  const isSelected = (node: Node): boolean =>
    judgement.problems.length === 0 && selects(plan, node);
  const stateOf = stateReader(scene, isSelected);
  const sinceOf = sinceReader(scene, time);
  return (node) => {
    const state = stateOf(node);
    const isTarget =
      state === 'intended' || (isSelected(node) && (concurrency > 0 || state !== 'pending'));
    return isTarget
      ? { key: keyOfNode(node), name: node.metadata.name, state, since: sinceOf(node, state) }
      : undefined;
  };
}

function sinceReader({ plan, world, judgement, failures }: Scene, time: string) {
  const resolvedAt =
    conditionOf(plan, 'LatestResolved')?.lastUpdateTime ?? plan.metadata.creationTimestamp ?? time;
  // While that is False, when this version began.
  const completedAt = conditionOf(plan, 'Complete')?.lastUpdateTime ?? resolvedAt;
  return ({ metadata: { name } }: Node, state: RecordedState): string => {
    if (state === 'pending') return resolvedAt;
    if (state === 'failed' || state === 'unsupported')
      return failures.nodes.get(name)?.since ?? time;
    if (state !== 'done') return time;
    return jobFor(world, { id: judgement.hash }, name, plan)?.status?.completionTime ?? completedAt;
  };
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
    // It held a slot for another version, whose Job may have changed it: going back is a new upgrade.
    // Also for a node that the Plan selects no more: its cordon ends first, and the label says what is not true.
    const isOutdated = latestHash !== hash && applying.has(hostnameOf(node));
    if (hash !== '' && ownMember(labels, label) === hash) return isOutdated ? 'intended' : 'done';
    // It keeps its place until its failure no longer counts.
    const failure = failures.nodes.get(name);
    if (failure) return latestHash !== hash || isOver(node, scene) ? 'pending' : failure.state;
    // Also for an earlier hash.
    if (!applying.has(hostnameOf(node)) || ownMember(labels, label) === latestHash)
      return 'pending';
    const own = openJobs(node, plan, world);
    const isBegun = own.length > 0 || isCordonedBy(node, plan, own);
    if (!isBegun && twinOf(world, { name, state: 'pending' })) return 'pending';
    if (isSelected(node)) return 'intended';
    // One that is left out while its Job works, or whose plan became invalid, ends first: it may be cordoned.
    const job = jobFor(world, { id: hash }, name, plan);
    const isAnswered = ownMember(labels, label) !== DISABLED && job !== undefined && !isHeld(job);
    const endedWell = job ? holds(job, 'Complete') : !own.some((each) => holds(each, 'Failed'));
    return isAnswered || ((problems.length > 0 || endedWell) && isCordonedBy(node, plan, own))
      ? 'intended'
      : 'pending';
  };
}

/** True if the recorded failure of the node counts no longer. */
function isOver(node: Node, { plan, world, now, judgement, attempts, failures }: Scene): boolean {
  const { version, hash } = judgement;
  const job = jobFor(world, { id: hash }, node.metadata.name, plan);
  const isObsolete = job && attempts?.isObsolete(job, { plan, node, version, hash });
  return isObsolete ?? attempts?.isForgotten(node, plan, failures, now) ?? false;
}

const keyOfNode = onceForEach((node: Node) => `${hostnameOf(node)}/${node.metadata.name}`);

/** As many digits as a number holds. */
const rankOf = onceForEachWith(({ metadata }: Node, salt) =>
  Number.parseInt(hash('sha256', `${metadata.uid ?? ''}${salt}`).slice(0, 13), 16),
);
