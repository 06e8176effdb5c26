/** Gathers the Snapshot of one decision from the watched objects. */
import { marksOn } from '../../coordination/node-marks.ts';
import { cordonOwner, exclusionOf, pendingOwner } from '../../drain/cordon-marks.ts';
import type { DrainPreview } from '../../drain/drain-preview.ts';
import { lifecycleOn } from '../../drain/lifecycle-conditions.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import type { CheckResult } from '../../health/checks.ts';
import type { HookResult } from '../../hooks/rules.ts';
import {
  annotated,
  type KubeObject,
  kubeletVersionOf,
  type Node,
  nodes,
  readyCondition,
} from '../../kube/resources.ts';
import { virtualBy } from '../../kube/virtual-nodes.ts';
import { claimOn } from '../../signal/at-work.ts';
import { holdOn, longestHold } from '../../signal/holds.ts';
import { ROLLOUT_ANNOTATION } from '../../signal/names.ts';
import { rfc3339 } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Dialect } from '../contract/dialect.ts';
import { claimantOf } from '../contract/plan-objects.ts';
import type { World, WorldObject } from '../contract/world.ts';
import { ABSENT } from '../gates/types.ts';
import { type Asked, answered, type FailedRequest, NEVER, UNASKED } from '../model/asked.ts';
import { controlsOn, NO_CONTROLS } from '../model/controls.ts';
import { ROLLS_BACK_ANNOTATION } from '../model/earlier-versions.ts';
import type { NodeView, Observation, TargetFacts } from '../model/facts.ts';
import {
  hasStarted,
  isFinal,
  ownerOf,
  type Rollout,
  type Stage,
  type Target,
  withStages,
} from '../model/rollout.ts';
import { qualifiedRunId } from '../model/runs.ts';
import type {
  ClusterFacts,
  ForeignWork,
  ObservedForeignWork,
  Pace,
  Snapshot,
} from '../model/snapshot.ts';
import { generationOfEnd, generationSeen } from '../model/written-conditions.ts';
import { withReasonRead } from '../reasons/recorded.ts';
import { possibleRollBack } from './possible-roll-back.ts';
import type { RefusedPart } from './refused-writes.ts';
import { targetLookup } from './target-lookup.ts';
import type { WatchFacts } from './watch-times.ts';
import { kindOf } from './world.ts';

/**
 * The facts that do not come from watches: the answers to probes, the drains of this process, and how long this process
 * has watched.
 */
export interface Known {
  /** Undefined as long as this process has not asked. */
  readonly controlPlane?: Snapshot['cluster']['controlPlane'] | undefined;
  /** Undefined as long as this process has not asked. */
  readonly preconditions?: Snapshot['plan']['preconditions'] | undefined;
  /** Undefined if this process does not watch the components. */
  readonly components?: Snapshot['cluster']['components'] | undefined;
  readonly health?: readonly CheckResult[] | undefined;
  /** Undefined if this process does not read the decisions of people. */
  readonly decisions?: Snapshot['plan']['decisions'] | undefined;
  readonly locks?: Snapshot['outside']['locks'];
  /** Undefined if this process does not count these pods. */
  readonly budgetPods?: Snapshot['outside']['budgetPods'] | undefined;
  readonly hooks?: readonly HookResult[] | undefined;
  readonly failures?: Snapshot['term']['failures'];
  /** The drain previews by name of the node; undefined if this process previews no drains. */
  readonly drainPreviews?: ReadonlyMap<string, Asked<DrainPreview>> | undefined;
  /** Returns for how many milliseconds this process has found the drain of the node blocked; undefined if it is not blocked. */
  readonly blockedMsOf?: ((node: string) => number | undefined) | undefined;
  /** Returns whether the target delegates its drain; undefined if this process does not know it yet for any target. */
  readonly drainDelegationOf?: ((target: Target) => Asked<boolean>) | undefined;
  /** True for read-only commands: they assume that targets delegate their drain. */
  readonly isReadOnly?: boolean | undefined;
  readonly drainOf?: ((node: string, owner: string) => DrainState | undefined) | undefined;
  /** Returns the milliseconds since this process first observed the attempt of the foreign work. */
  readonly watchForeign?: ((work: ForeignWork) => number) | undefined;
  readonly watch?: ((target: Target, observation: Observation) => WatchFacts) | undefined;
  readonly watchPayloads?: ((rollout: Rollout) => number) | undefined;
  readonly refusalOf?:
    | ((rollout: Rollout, target: Target, part?: RefusedPart) => FailedRequest | undefined)
    | undefined;
  /** True if this leader has already recorded the rollout in the present reconcile. */
  readonly hasRecorded?: boolean | undefined;
}

/**
 * Returns the snapshot of a plan at `now`, in milliseconds since the Unix epoch. It sends no
 * request.
 */
export function gather(
  dialect: Dialect,
  plan: KubeObject,
  views: World,
  now: number,
  known: Known = {},
): Snapshot {
  // Each list is made once, because nothing changes while the snapshot is gathered, and every target reads the lists.
  const list = onceForEach((kind: WorldObject['resource']) => views.list(kind)) as World['list'];
  const world = { ...views, list };
  const resolved = dialect.resolve(plan, world, now);
  const snapshot = gatherOrphaned({ dialect, plan, rollout: resolved, world, known }, now);
  const { rollout } = snapshot;
  const { decisions } = snapshot.plan;
  const rollBack = possibleRollBack({ dialect, plan, rollout, world, decisions }, now);
  return {
    ...snapshot,
    plan: {
      ...snapshot.plan,
      controls: controlsOn(
        dialect.planObjects?.proved?.(plan) ?? plan,
        dialect.planObjects?.controlPrefix,
      ),
      edits: dialect.reruns && isFinal(rollout) ? editsOf(plan, rollout) : undefined,
      rollBack,
      ofRollBack:
        typeof rollBack === 'object' && 'plan' in rollBack
          ? () => gatherPlanned(dialect, begun(dialect, rollBack.plan, rollout), world, now, known)
          : undefined,
    },
  };
}

/**
 * Returns the snapshot of a plan that is not written yet. It contains nothing that a leader learns about the plan only
 * after the plan is written, such as the answers to probes.
 */
export function gatherPlanned(
  dialect: Dialect,
  plan: KubeObject,
  world: World,
  now: number,
  { decisions }: Pick<Known, 'decisions'>,
): Snapshot {
  return gather(dialect, plan, world, now, { decisions, isReadOnly: true });
}

/** Returns the plan that rolls the run of the rollout back, as it is before its first start. */
function begun({ reruns }: Dialect, plan: KubeObject, { source, id }: Rollout): KubeObject {
  const run = qualifiedRunId({ planUid: source.uid, id });
  const back = annotated(plan, { [ROLLS_BACK_ANNOTATION]: run });
  return reruns?.withoutRecord(back) ?? back;
}

/**
 * Returns how the spec of an ended rollout was edited. The generation grows with each change of the spec, but also when the plan is
 * deleted.
 */
function editsOf(plan: KubeObject, rollout: Rollout): Snapshot['plan']['edits'] {
  const { generation, deletionTimestamp } = plan.metadata;
  if (generation === undefined || deletionTimestamp !== undefined) return undefined;
  // The leader may not have written its conditions since the end. Then an edit that the leader saw before is no later
  // edit.
  const ended = rollout.generation ?? generationOfEnd(plan) ?? generationSeen(plan);
  return {
    isAfterEnd: ended === undefined ? undefined : generation > ended,
    isNew: rollout.run !== generation,
  };
}

interface Scene {
  readonly dialect: Dialect;
  readonly plan: KubeObject;
  readonly rollout: Rollout;
  readonly world: World;
  readonly known: Known;
}

/**
 * Returns the snapshot of a plan that was deleted, and whose rollout is resolved already. Nobody controls or edits such a
 * plan any more, and it is not rolled back. `now` is in milliseconds since the Unix epoch.
 */
export function gatherOrphaned(given: Scene, now: number): Snapshot {
  const scene = { ...given, rollout: withReasonRead(given.rollout) };
  const { dialect, plan, rollout, world, known } = scene;
  const joined = dialect.joinedTargets?.(plan, world, now);
  const asksFirst = dialect.preconditions !== undefined && known.isReadOnly !== true;
  const { skewRules } = dialect.versions ?? {};
  return {
    rollout,
    plan: {
      controls: NO_CONTROLS,
      edits: undefined,
      joined,
      claim: dialect.nodeSharing?.claims && claimantOf(dialect, plan),
      markOwner: claimantOf(dialect, plan),
      awaits: dialect.nodeSharing?.awaits?.(plan, world),
      decisions: known.decisions ?? NEVER,
      preconditions: known.preconditions ?? (asksFirst ? UNASKED : NEVER),
      rollBack: undefined,
      ofRollBack: undefined,
    },
    abilities: {
      canIgnoreEdits: dialect.reruns !== undefined,
      canSkip: dialect.recordsSkips === true,
      canRetry: dialect.ordersRetries !== undefined,
      leavesLate: dialect.ordersRetries === 'unless-late',
      retriedBy: dialect.retriedBy?.(plan),
      waitsForVersions: skewRules?.isWait === true,
      mostBehind: skewRules?.mostBehind,
      mustDownload: dialect.signal.downloads?.requiredOf !== undefined,
    },
    cluster: clusterFacts(scene),
    outside: {
      health: known.health,
      locks: known.locks,
      hooks: known.hooks,
      budgetPods: known.budgetPods ?? NEVER,
      foreignWork: (dialect.foreignWork?.list(world, rollout) ?? []).flatMap((work) =>
        freshWork(work, known, now),
      ),
    },
    pace: paceOf(scene),
    term: {
      failures: known.failures,
      payloadsWatchedMs: hasStarted(rollout) ? undefined : known.watchPayloads?.(rollout),
      hasRecorded: known.hasRecorded === true,
    },
    targets: targetLookup({
      dialect,
      plan,
      rollout,
      world,
      joined: joined ?? [],
      gatherFacts: (stage, target) => gatherTargetFacts(scene, stage, target),
    }),
  };
}

function clusterFacts({ dialect, plan, world, known }: Scene): ClusterFacts {
  const rules = dialect.versions?.skewRules;
  const watchesNodes = dialect.watched.some(({ resource }) => kindOf(resource) === kindOf(nodes));
  return {
    controlPlane: known.controlPlane ?? UNASKED,
    components: (dialect.hasComponentLeases === true && known.components) || NEVER,
    apiServers:
      rules && (rules.apiServers ? rules.apiServers(plan, world) : dialect.endpoints(world)),
    fleet: watchesNodes ? world.list(nodes) : undefined,
  };
}

/**
 * Returns the foreign work if it is recent enough to count; otherwise an empty list. Read-only commands do not watch,
 * so they measure the age of the work from its signal.
 */
function freshWork(work: ForeignWork, { watchForeign }: Known, now: number): ObservedForeignWork[] {
  const sent = now - Date.parse(work.attempt);
  const ageMs = watchForeign?.(work) ?? (Number.isNaN(sent) ? 0 : Math.max(0, sent));
  const isOld = sent >= FOREIGN_ATTEMPT_MS;
  const leftMs = STALE_AFTER_MS - ageMs;
  return isOld || leftMs <= 0 ? [] : [{ ...work, since: rfc3339(now - ageMs), leftMs }];
}

function gatherTargetFacts(scene: Scene, stage: Stage, target: Target): TargetFacts {
  const { dialect, plan, world, rollout, known } = scene;
  const object = dialect.objectOf(stage, target, world);
  if (!object) {
    const meant = dialect.names?.meantBy?.(target.name, stage, world);
    return { ...ABSENT, meant };
  }
  const observation = dialect.signal.read(world, rollout, stage, target, plan);
  const node = dialect.drainDelegation?.nodeOf(stage, target, world);
  const skewRules = dialect.versions?.skewRules;
  const { downloads } = dialect.signal;
  // A target that is done has no deadline.
  const watched = target.state === 'done' ? undefined : known.watch?.(target, observation);
  return {
    ...ownFacts(object),
    version: skewRules ? skewRules.versionOf(object) : kubeletVersionOf(object),
    earlierVersion: dialect.versions?.earlierVersionOf?.(object, rollout, plan),
    // In a stage that changes no version, such as a stage of image bundles, the version of a node does not show whether its target is done.
    isThere:
      stage.keepsVersion !== true &&
      !stage.forced &&
      skewRules?.runs?.(object, stage.version) === true,
    signalledBy: skewRules?.upgradedBy
      ? skewRules.upgradedBy(object, plan)
      : object.metadata.annotations?.[ROLLOUT_ANNOTATION]?.split('/')[0],
    ...versionFacts(scene, stage, target, { object, observation }),
    versionGap:
      observation.kind === 'succeeded'
        ? dialect.versions?.versionGapOf?.(world, rollout, stage, target, plan)
        : undefined,
    agent: dialect.agents?.of(object),
    subject: dialect.names?.subjectOf?.(object),
    unfit: stage.keepsVersion ? undefined : dialect.agents?.unfitFor?.(object, stage.version),
    drainDelegation: delegationOf(scene, target),
    node: node && viewOf(node),
    claimNeed: node && dialect.nodeSharing?.claims?.needOf(node),
    isNodeOutdated: node !== undefined && world.outdated?.(nodes).has(node.metadata.name) === true,
    drainPreview:
      node && known.drainPreviews
        ? (known.drainPreviews.get(node.metadata.name) ?? UNASKED)
        : NEVER,
    blockedMs: node && known.blockedMsOf?.(node.metadata.name),
    drain: node && known.drainOf?.(node.metadata.name, ownerOf(rollout, target)),
    watchedMs: watched?.watchedMs,
    followedMs: watched?.followedMs,
    prefetch: downloads?.prefetchOf?.(world, rollout, stage, target),
    downloads: downloads?.checkOf?.(world, rollout, stage, target),
    requiredDownload: downloads?.requiredOf?.(world, rollout, stage, target, plan),
    hold: longestHold([holdOn(object), node && holdOn(node)]),
    refusal: known.refusalOf?.(rollout, target),
    announcementRefusal: known.refusalOf?.(rollout, target, 'announcement'),
    observation,
  };
}

/**
 * Returns the facts that compare the versions of the plan with those that its targets were signalled with. What a target
 * runs is compared only after the end of the rollout.
 */
function versionFacts(
  { dialect, plan, world, rollout }: Scene,
  stage: Stage,
  target: Target,
  { object, observation }: { readonly object: KubeObject; readonly observation: Observation },
): Pick<TargetFacts, 'asked' | 'isBehind'> {
  if (!isFinal(rollout) && !isOfAttempt(target, observation))
    return { asked: undefined, isBehind: false };
  // A virtual Node reports a version that is not the version of a host.
  const isUpgraded =
    isFinal(rollout) &&
    target.state === 'done' &&
    stage.keepsVersion !== true &&
    virtualBy(object) === undefined;
  return {
    asked: dialect.reruns?.askedOf(world, rollout, stage, target),
    isBehind: isUpgraded && dialect.versions?.isBehind(object, stage, plan) === true,
  };
}

/**
 * Returns true if the signal on the object is not that of an earlier attempt. A leader of another product may record an attempt after
 * its signal, so a signal that is older than the record is that of an earlier attempt only if it has failed.
 */
function isOfAttempt({ state, since }: Target, observation: Observation): boolean {
  if (state !== 'intended') return state !== 'pending';
  if (observation.kind === 'none') return false;
  return observation.kind !== 'failed' || Date.parse(observation.attempt) >= Date.parse(since);
}

const ownFacts = onceForEach((object: KubeObject) => {
  const ready = readyCondition(object);
  return {
    exists: true,
    meant: undefined,
    platform: platformOf(object),
    labels: object.metadata.labels,
    created: object.metadata.creationTimestamp,
    virtual: virtualBy(object),
    ready: ready && ready.status === 'True',
    readySince: ready?.lastTransitionTime,
  };
});

function delegationOf({ dialect, known }: Scene, target: Target): TargetFacts['drainDelegation'] {
  if (!dialect.drainDelegation) return NOT_DELEGATED;
  if (dialect.drainDelegation.always || known.isReadOnly) return DELEGATED;
  return known.drainDelegationOf?.(target) ?? UNASKED;
}

/** The answers are shared by all targets, because a rollout may have 15,000 of them. */
const DELEGATED = answered(true);
const NOT_DELEGATED = answered(false);

const viewOf = onceForEach(
  (node: Node): NodeView => ({
    name: node.metadata.name,
    unschedulable: node.spec?.unschedulable === true,
    cordonOwner: cordonOwner(node),
    taintOwner: pendingOwner(node),
    exclusion: exclusionOf(node),
    claim: claimOn(node),
    marks: marksOn(node),
    lifecycle: lifecycleOn(node),
  }),
);

/**
 * Returns the 90th, the 50th and the 10th percentile of the milliseconds that finished targets took. Before two targets are
 * done, returns what is known of earlier upgrades instead.
 */
function paceOf(scene: Scene): Pace {
  const { dialect, plan, world, rollout } = scene;
  const { signal } = dialect;
  // If the signal of a dialect is observable, its targets report no times.
  const hasTimes = signal.tookMs !== undefined || signal.observable === undefined;
  const tookMs = (stage: Stage, target: Target): number | undefined =>
    signal.tookMs
      ? signal.tookMs(world, rollout, stage, target, plan)
      : reportedMs(signal.read(world, rollout, stage, target, plan));
  const spent = (hasTimes ? withStages(rollout) : []).flatMap(({ stage, target }) =>
    target.state === 'done' ? (tookMs(stage, target) ?? []) : [],
  );
  const mostMs = within(spent, 0.9);
  const usualMs = within(spent, 0.5);
  const fastMs = within(spent, 0.1);
  if (mostMs === undefined || usualMs === undefined || fastMs === undefined)
    return earlierPaces(scene);
  return { kind: 'measured', mostMs, usualMs, fastMs };
}

/** Returns the sum of the times of all steps that the target reports; undefined if it reports none. */
function reportedMs(observation: Observation): number | undefined {
  const times = observation.kind === 'none' ? undefined : observation.report?.spent;
  return times && Object.values(times).reduce((sum, ms) => sum + ms, 0);
}

/** Returns the 90th percentile of the earlier times of each stage, as far as the dialect knows them and the rollout is not over. */
function earlierPaces({ dialect, plan, world, rollout }: Scene): Pace {
  const { signal } = dialect;
  if (signal.earlierMs === undefined || isFinal(rollout)) return { kind: 'unknown' };
  const paces = rollout.stages.flatMap((stage) => {
    const times = stage.targets.flatMap(
      (target) => signal.earlierMs?.(world, rollout, stage, target, plan) ?? [],
    );
    const pace = within(times, 0.9);
    return pace === undefined ? [] : [[stage.id, pace] as const];
  });
  return { kind: 'earlier', mostMsByStage: Object.fromEntries(paces) };
}

/**
 * Returns the time within which this share of the targets were done; undefined if fewer than two times are known. The
 * longest time never counts, because an agent may report a wrong time.
 */
function within(times: readonly number[], share: number): number | undefined {
  if (times.length < 2) return undefined;
  return times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * share)];
}

/** Returns `<os>-<architecture>` from the well-known labels; undefined if one of them is missing. */
export function platformOf({ metadata: { labels = {} } }: KubeObject): string | undefined {
  const os = labels['kubernetes.io/os'];
  const architecture = labels['kubernetes.io/arch'];
  return os && architecture ? `${os}-${architecture}` : undefined;
}

/** Milliseconds without a report after which a stuck node no longer blocks other plans. */
export const STALE_AFTER_MS = 2 * 60 * 60 * 1000;

/**
 * Foreign work counts for at most this many milliseconds after its signal. Without this limit, a node could show an old
 * signal again, and each new leader would measure the age of that signal from its own first observation.
 */
const FOREIGN_ATTEMPT_MS = 24 * 60 * 60 * 1000;
