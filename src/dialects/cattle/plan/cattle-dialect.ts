/** The dialect of Rancher's system-upgrade-controller. It maps Plans to rollouts of the engine, and Jobs to signals. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { Dialect } from '../../../engine/contract/dialect.ts';
import type { NodeSharing, PlanObjects } from '../../../engine/contract/features.ts';
import type { Watched, World } from '../../../engine/contract/world.ts';
import type { ReportedEvent } from '../../../engine/model/reasons.ts';
import { type Rollout, targetsIn } from '../../../engine/model/rollout.ts';
import { type RolloutPolicy, WITHOUT_DEADLINES } from '../../../engine/policy/rollout-policy.ts';
import { isRelevant } from '../../../engine/snapshot/predicates.ts';
import { lackOfPods } from '../../../kube/podless-jobs.ts';
import {
  type Job,
  jobs,
  type KubeObject,
  kubeletVersionOf,
  nodes,
  pods,
  type Secret,
  secrets,
} from '../../../kube/resources.ts';
import { trimNode } from '../../../kube/trimmed.ts';
import { mayBeSignalled } from '../../../signal/at-work.ts';
import { sameJson } from '../../../util/json.ts';
import { listed } from '../../../util/phrases.ts';
import { isOlder } from '../../../versions/release-parts.ts';
import { attemptsOf, failureOn, recordedFailures, withoutFurtherNodes } from './attempts.ts';
import { awaitedBy, endlessWaits, waitFacts } from './awaited-plan.ts';
import { orphanedPlans } from './cattle-orphaned-work.ts';
import { jobSignal, unnamedCordon } from './cattle-signal.ts';
import {
  CHANNEL_TYPE,
  conditionOf,
  holds,
  RESOLVED_TYPE,
  stallsOf,
  withStalls,
} from './conditions.ts';
import { type CattleConfig, DEFAULT_JOB_SETTINGS, type JobSettings } from './config.ts';
import { watchedPulls } from './image-pull.ts';
import { reportedVersion } from './installed-version.ts';
import { hashedSecrets, resolveLatest } from './latest.ts';
import { isHeld, withDrainOf } from './leader-drain.ts';
import { CONTROL_PREFIX, HELD_ANNOTATION, PLAN_LABEL } from './names.ts';
import { isOfSomePlan, occupantOf, twinOf } from './node-occupant.ts';
import { versionBeforeOn } from './node-records.ts';
import { isPaused, isUnfinished, jobsAt, trimJob } from './plan-jobs.ts';
import { stallIn, trimPod, waitsLong } from './pods.ts';
import { resolve } from './resolve-cattle-plan.ts';
import { rivalsInCluster } from './rivals.ts';
import { createTargetMemory } from './target-memory.ts';
import { unfitNodes } from './unfit-nodes.ts';
import { judgedInstallation, serverEndpoints, skewRulesOf, versionGapOf } from './version-rules.ts';
import { windowsOf } from './window.ts';
import { afterJob, GATE_BEFORE_DRAIN, hostOf, project, WAITING_TYPE } from './write-status.ts';

const watchedNodes: Watched = { resource: nodes, isRelevant, transform: trimNode };
const watchedJobs: Watched = {
  resource: jobs,
  labelSelector: PLAN_LABEL,
  isRelevant: isJobChange,
  transform: trimJob,
};
const watchedPlans: Watched = {
  resource: cattlePlans,
  isRelevant: (before, after) => !sameJson(waitFacts(before), waitFacts(after)),
};
const isSecretChange = (before: Secret, after: Secret): boolean =>
  before.type !== after.type || !sameJson(before.data, after.data);
/** The watch is optional because the roles of the original do not allow the controller to read pods. */
const watchedPods: Watched = {
  resource: pods,
  labelSelector: PLAN_LABEL,
  // Most pods run or have succeeded. They cannot explain a stall, so the watch leaves them out.
  fieldSelector: 'status.phase!=Running,status.phase!=Succeeded',
  optional: true,
  advisory: true,
  transform: trimPod,
  isRelevant: (before, after) => stallIn(before) !== stallIn(after),
  isNeeded: (world, now) =>
    world.list(jobs).some((job) => isUnfinished(job) && waitsLong(job, now)),
};

export function cattle(config: CattleConfig): Dialect<CattlePlan> {
  const { namespace } = config;
  const attempts = attemptsOf(config);
  const memory = createTargetMemory();
  return {
    ...viewOf(config),
    signal: jobSignal(config, attempts),
    nodeSharing: nodeSharing(config),
    planObjects: { ...PLAN_OBJECTS, namespace },
    watched: [
      watchedNodes,
      watchedJobs,
      { ...watchedPlans, namespace },
      { ...watchedPods, namespace },
      ...(config.checksVersions === false ? [] : watchedPulls(namespace)),
      { resource: secrets, namespace, isRelevant: isSecretChange, namesIn: hashedSecrets },
    ],
    resolve: (plan, world, now) =>
      resolve(plan, world, now, {
        memory,
        attempts,
        config,
        secretOf: (name) => world.get(secrets, name, namespace),
      }),
  };
}

function nodeSharing(config: CattleConfig): NodeSharing<CattlePlan> {
  const doesShare = config.plansShareNodes === true;
  return {
    occupantOf: doesShare ? twinOf : occupantOf,
    awaits: (plan, world) => awaitedBy(plan, world, config.installers),
    claims: {
      needOf: (node) => {
        if (doesShare) return undefined;
        return mayBeSignalled(node) ? 'always' : 'with-limit';
      },
      isAtWork: (world, { metadata: { name } }) =>
        jobsAt(world, name).some((job) => isUnfinished(job) && isOfSomePlan(job)),
    },
  };
}

const PLAN_OBJECTS: PlanObjects<CattlePlan> = { controlPrefix: CONTROL_PREFIX, ordersByUid: true };

/** The dialect for read-only commands, which look at all namespaces and cannot read Secrets. */
export const cattleView: Dialect<CattlePlan> = viewOf({
  name: 'system-upgrade-controller',
  namespace: '',
  job: { ...DEFAULT_JOB_SETTINGS, drainInJob: false },
});

function viewOf(config: CattleConfig): Dialect<CattlePlan> {
  const gate = config.job.drainInJob ? 'Gate' : GATE_BEFORE_DRAIN;
  const memory = createTargetMemory();
  return {
    name: 'cattle',
    rollBack: {
      byHand:
        'a Plan of Rancher needs an image that can install an older version, which only a person can choose; run refit rollback for the Plan',
    },
    plans: cattlePlans,
    statusRecord: { hasConditions: true },
    planObjects: PLAN_OBJECTS,
    watched: [watchedNodes, watchedJobs, watchedPlans, watchedPods, ...watchedPulls()],
    resolve: (plan, world, now) => resolve(plan, world, now, { memory, config }),
    project: (rollout, plan, now) => project(rollout, plan, now, { ...config, gate }),
    reporting: {
      planEvents: cattleEvents,
      unknownOf: (plan) => conditionOf(plan, CHANNEL_TYPE)?.message,
      warnings: (plan, world, plans) => [
        ...rivalsInCluster(plan, world, plans),
        ...endlessWaits(plan, world, plans, config.installers),
        ...unfitNodes(plan, world),
      ],
      stalls: { record: withStalls, of: stallsOf },
    },
    versions: {
      isBehind: (node, { version }, plan) => isBehind(node, version, plan, config),
      skewRules: skewRulesOf(config),
      versionGapOf,
      earlierVersionOf: (node, { id }, plan) => versionBeforeOn(node, plan, id),
    },
    planRules: {
      apply: (plan, policy, world) =>
        policyOf(plan, policy, {
          ...config,
          job: world ? settingsIn(plan, world) : config.job,
        }),
    },
    orphanedWork: { plans: (world, plans) => orphanedPlans(config.namespace, world, plans) },
    // If a Job is held, it waits until the leader has drained its node. Any other Job drains its node itself, and the
    // leader only uncordons the node.
    drainDelegation: {
      always: true,
      nodeOf: (_stage, { name }, world) => world.get(nodes, name),
      unnamedCordon,
    },
    nodeSharing: {
      occupantOf,
      awaits: (plan, world) => awaitedBy(plan, world, config.installers),
    },
    // If the Node was deleted, its Job represents the target.
    objectOf: (_stage, { name }, world) => world.get(nodes, name) ?? jobsAt(world, name)[0],
    endpoints: serverEndpoints,
    signal: jobSignal(config),
  };
}

function isBehind(
  node: KubeObject,
  latest: string,
  plan: CattlePlan,
  config: CattleConfig,
): boolean {
  const installed = judgedInstallation(plan, latest, config);
  const found = kubeletVersionOf(node);
  if (installed.kind !== 'kubernetes' || found === undefined) return false;
  // A kubelet of K3s reports its release candidate, and the version of the Plan is without one.
  return isOlder(reportedVersion(found), installed.version);
}

/**
 * Returns the policy with the window and the drain options of the Plan. The policy has only the deadline `ready`,
 * because Jobs have deadlines of their own. As in the original, the window is applied only until the first node is in progress.
 */
function policyOf(plan: CattlePlan, policy: RolloutPolicy, config: CattleConfig): RolloutPolicy {
  const { spec, status } = plan;
  const windows = spec?.window && !status?.applying ? windowsOf(spec.window) : undefined;
  const planWindows =
    windows === undefined || typeof windows === 'string' ? {} : { planWindows: windows };
  const { targetDeadlineMs, stepDeadlines } = WITHOUT_DEADLINES;
  const deadlines = {
    targetDeadlineMs,
    stepDeadlines: { ...stepDeadlines, ...readyOf(plan, policy, config) },
  };
  // No phase of a Plan is final, so a Plan also waits with a policy that would end it.
  const waiting = { ...policy, endsNotReady: false };
  return withDrainOf(plan, { ...waiting, ...deadlines, ...planWindows }, config.job);
}

/**
 * Returns the deadline `ready` of a node after its Job. For an image that does not install Kubernetes, it applies only
 * if the policy names it, because such a Job may restart the host, which can take long.
 */
function readyOf(
  plan: CattlePlan,
  { agent, stepDeadlines: { ready } }: RolloutPolicy,
  config: CattleConfig,
): { readonly ready?: number } {
  const { version } = resolveLatest(plan, undefined);
  const isVerified = judgedInstallation(plan, version, config).kind === 'kubernetes';
  return isVerified || agent.readyTimeoutMs !== undefined ? { ready } : {};
}

/** Infers for read-only commands, from the Plan and its Jobs, whether the leader drains the nodes. */
function settingsIn(plan: CattlePlan, world: World): JobSettings {
  const isHeldFirst = ({ metadata }: Job): boolean =>
    metadata.annotations?.[HELD_ANNOTATION] !== undefined;
  const isTold = conditionOf(plan, WAITING_TYPE)?.reason === GATE_BEFORE_DRAIN;
  return { ...DEFAULT_JOB_SETTINGS, drainInJob: !isTold && !world.list(jobs).some(isHeldFirst) };
}

/**
 * Returns true if the change of a Job may change a decision. A change in the number of its active pods matters only if
 * the Job has begun without a pod, and after a pod has failed, because a stall may then begin or end.
 */
function isJobChange(before: KubeObject, after: KubeObject): boolean {
  const decisive = (job: Job): unknown => {
    const { failed = 0, active } = job.status ?? {};
    const isOver = [holds(job, 'Complete'), holds(job, 'Failed')];
    const isPodless = lackOfPods(job, undefined) !== undefined;
    const tried = failed > 0 ? active : isPodless;
    return [isPaused(job), isHeld(job), isOver, failed, tried];
  };
  return before.metadata.uid !== after.metadata.uid || !sameJson(decisive(before), decisive(after));
}

/** The codes of the engine's Events that `cattleEvents` leaves out, because an Event of the original says the same. */
const REPLACED = new Set(
  'Started Completed TargetFailed TargetRefused InvalidPlan VersionUnknown ChannelUnanswered'.split(
    ' ',
  ),
);
const MOST_NAMES = 10;

/**
 * Returns Events for a changed record with the reasons of the original, because alerts search for those reasons. `ours`
 * are the Events of the engine.
 */
export function cattleEvents(
  before: CattlePlan,
  after: CattlePlan,
  rollout: Rollout,
  ours: readonly ReportedEvent[],
) {
  const { latestVersion, latestHash, applying = [] } = after.status ?? {};
  const target = `version ${latestVersion}, hash ${latestHash}`;
  const earlier = new Set(before.status?.applying);
  const done = targetsIn(rollout, 'done').filter((target) => !applying.includes(hostOf(target)));
  const ended = done.map(hostOf).filter((host) => earlier.has(host));
  const started = applying.filter((host) => !earlier.has(host));
  const events: ReportedEvent[] = [];
  const add = (type: ReportedEvent['type'], code: string, message: string): number =>
    events.push({ type, reason: { code, message } });
  const changed = (type: string): string | undefined => {
    const was = conditionOf(before, type);
    const is = conditionOf(after, type);
    // Each further failed node has its own Event.
    const isSame =
      withoutFurtherNodes(was?.message ?? '') === withoutFurtherNodes(is?.message ?? '');
    return was?.status === is?.status && isSame && was?.reason === is?.reason
      ? undefined
      : `${is?.status} ${is?.reason}`;
  };
  const told = (type: string): string =>
    withoutFurtherNodes(conditionOf(after, type)?.message ?? '');
  const validated = changed('Validated');
  const complete = changed('Complete');
  if (validated?.startsWith('True') === true) add('Normal', 'Validated', 'the Plan is valid');
  if (validated?.startsWith('False') === true) add('Warning', 'ValidateFailed', told('Validated'));
  if (changed(RESOLVED_TYPE)?.startsWith('False') === true)
    add('Warning', 'ResolveFailed', told(RESOLVED_TYPE));
  if (latestVersion !== undefined && latestVersion !== before.status?.latestVersion)
    add('Normal', 'Resolved', `resolved to ${target}`);
  const [, failure] = /^False (\S+)$/.exec(complete ?? '') ?? [];
  const isFailure = failure === 'JobFailed' || afterJob(failure) !== undefined;
  if (isFailure) add('Warning', conditionOf(after, 'Complete')?.reason ?? '', told('Complete'));
  const known = recordedFailures(before).nodes;
  for (const [name, { since, state }] of recordedFailures(after).nodes) {
    const said = told('Complete');
    const isTold = isFailure && (said.includes(` on Node ${name}:`) || said.startsWith(`${name} `));
    const isNew = name !== '' && state === 'failed' && known.get(name)?.since !== since;
    if (isNew && !isTold) add('Warning', 'JobFailed', failureOn(name));
  }
  if (complete === 'False ValidationFailed') add('Warning', 'ValidationFailed', told('Complete'));
  if (ended.length > 0) add('Normal', 'JobComplete', `Jobs ended on ${listed(ended, MOST_NAMES)}`);
  if (started.length > 0)
    add('Normal', 'SyncJob', `Jobs start on ${listed(started, MOST_NAMES)}: ${target}`);
  if (complete === 'False Waiting') add('Normal', 'Waiting', told('Complete'));
  if (complete?.startsWith('True') === true)
    add('Normal', 'Complete', `every selected node is done: ${target}`);
  for (const { type, reason } of ours)
    if (!REPLACED.has(reason.code))
      add(type, reason.code === 'Resting' ? 'JobCompleteWaiting' : reason.code, reason.message);
  return events;
}
