/** Sends instructions to nodes as annotations and reads their answers, for every dialect whose nodes run an agent. */
import type { ForeignWorkFinder } from '../../engine/contract/features.ts';
import type { Signal } from '../../engine/contract/signal.ts';
import type { World } from '../../engine/contract/world.ts';
import type { Signalling } from '../../engine/model/decision.ts';
import type { Observation, UnnamedCordon } from '../../engine/model/facts.ts';
import {
  inState,
  type Role,
  type Rollout,
  type Stage,
  type Target,
} from '../../engine/model/rollout.ts';
import type { ForeignWork } from '../../engine/model/snapshot.ts';
import type { TimedStep } from '../../engine/policy/rollout-policy.ts';
import {
  annotated,
  type KubeObject,
  nodes,
  type Resource,
  withoutAnnotations,
} from '../../kube/resources.ts';
import {
  type AgentPolicy,
  type AgentReport,
  agentPolicyFor,
  decodeReport,
  decodeSignal,
  encodeAgentPolicy,
  encodeReport,
  encodeSignal,
  type SignalData,
} from '../../signal/annotations.ts';
import { isOver, otherClaimantOn } from '../../signal/at-work.ts';
import {
  AGENT_POLICY_ANNOTATION,
  ATTEMPT_LABEL,
  DOWNLOAD_CHECK_ANNOTATION,
  PREFETCH_ANNOTATION,
  REPORT_ANNOTATION,
  ROLLOUT_ANNOTATION,
} from '../../signal/names.ts';
import { rfc3339 } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import { ownMember } from '../../util/own-member.ts';
import { annotationDownloads } from './annotation-downloads.ts';
import { LONGEST_UPGRADE_MS } from './longest-upgrade.ts';
import { type ResourceOf, signalObjects } from './signal-objects.ts';
import { belongs, originOf, originText } from './signal-owner.ts';
import { commandOf, kindOf } from './stage-command.ts';

export function annotationSignal({
  resourceOf,
  agent,
  isBegun,
}: {
  resourceOf: ResourceOf;
  agent?: AgentPolicy;
  /** Returns true if a controller outside of the stage was already upgraded to the version of the stage. */
  isBegun?: (world: World, stage: Stage, target: Target) => boolean;
}): Signal {
  const { objectOf, replacing } = signalObjects(resourceOf);
  return {
    read(world, rollout, stage, target) {
      const object = objectOf(world, stage, target);
      return object && signalFor(object, rollout, stage)
        ? observe(object.metadata)
        : { kind: 'none' };
    },

    send(world, rollout, signalling) {
      const { stage, target } = signalling;
      const object = objectOf(world, stage, target);
      const isFirst = (): boolean => isBegun?.(world, stage, target) !== true;
      const asked = { ...signalling, agent: { ...agentFor(signalling, isFirst), ...agent } };
      const signalled = object && withSignal(object, rollout, asked);
      const isNode = resourceOf(stage) === nodes;
      return replacing(
        stage,
        signalled && isNode ? withAttempt(signalled, rollout, asked) : signalled,
      );
    },

    touches(world, _rollout, stage, target) {
      const object = objectOf(world, stage, target);
      return object && { resource: resourceOf(stage), object };
    },

    acknowledge(world, _rollout, stage, target, now) {
      const object = objectOf(world, stage, target);
      const next = ownMember(
        NEXT,
        decodeSignal(object?.metadata.annotations)?.status?.status ?? '',
      );
      return next === undefined ? undefined : replacing(stage, withStatus(object, next, now));
    },

    cancel: (world, _rollout, stage, target, { message }, now) =>
      replacing(stage, withStatus(objectOf(world, stage, target), 'Failed', now, message)),

    earlierMs(world, rollout, stage, target) {
      const object = objectOf(world, stage, target);
      const last = object && lastUpgrade(object);
      if (object === undefined || last === undefined || last.kind !== kindOf(stage))
        return undefined;
      // On a Node, only the label that the leader sets proves that a signal was sent, because kubelets can write annotations.
      const isSent = resourceOf(stage) !== nodes || last.isLabelled;
      return isSent && signalFor(object, rollout, stage) === undefined ? last.ms : undefined;
    },

    downloads: annotationDownloads(resourceOf),
  };
}

/**
 * Returns the policy for the agent. Only the first controller takes a snapshot of etcd, before its upgrade, because
 * workers have no etcd, and all members of etcd have the same data. `isFirst` may read every Node, so it is called
 * last.
 */
function agentFor({ stage, agent }: Signalling, isFirst: () => boolean): AgentPolicy {
  const { etcdSnapshot, ...others } = agent;
  const isWanted =
    etcdSnapshot !== undefined &&
    stage.role === 'controller' &&
    kindOf(stage) === 'k0supdate' &&
    inState(stage, 'done').length === 0 &&
    isFirst();
  return { ...others, ...(isWanted && { etcdSnapshot }) };
}

/**
 * Returns how many milliseconds the last upgrade of the object took, as its agent reported. Also returns whether the
 * label of the leader proves that a signal was sent. Returns undefined if the upgrade did not succeed, or if the time
 * is unusable.
 */
const lastUpgrade = onceForEach(({ metadata: { annotations, labels } }: KubeObject) => {
  const signal = decodeSignal(annotations);
  if (signal?.status?.status !== 'Completed') return undefined;
  const { created, command } = signal;
  const { spent = {} } = decodeReport(annotations, created) ?? {};
  const ms = Object.values(spent).reduce((sum, each) => sum + each, 0);
  const isLabelled = labels?.[ATTEMPT_LABEL]?.endsWith(attemptLabel('', created)) === true;
  return ms > 0 && ms <= LONGEST_UPGRADE_MS ? { kind: command.kind, ms, isLabelled } : undefined;
});

/** Returns the signal on the object if it belongs to this stage of the rollout; otherwise undefined. */
export function signalFor(
  object: KubeObject | undefined,
  rollout: Rollout,
  stage: Stage,
): SignalData | undefined {
  const signal = decodeSignal(object?.metadata.annotations);
  const isFor = signal?.command.kind === kindOf(stage) && signal.command.id === stage.command;
  return object && isFor && belongs(object, signal, rollout, stage.role) ? signal : undefined;
}

/** A node with a status on the left side waits for the leader. The leader answers with the status on the right side. */
const NEXT: Readonly<Record<string, string>> = {
  Cordoning: 'ApplyingUpdate',
  UnCordoning: 'Completed',
};

export function withSignal(
  object: KubeObject,
  rollout: Rollout,
  signalling: Signalling,
): KubeObject {
  const { stage, target, payload, agent } = signalling;
  const signal = encodeSignal({
    planId: rollout.id,
    created: target.since,
    command: commandOf(stage, payload),
  });
  const ours = {
    [ROLLOUT_ANNOTATION]: originText(rollout, target.since),
    ...encodeAgentPolicy(agent),
  };
  return annotated(withoutAnnotations(object, ...ANSWERED), { ...signal, ...ours });
}

/**
 * The annotations that a new signal removes: those of an earlier signal, and the requests to fetch a version ahead or to check
 * downloads.
 */
const ANSWERED = [
  REPORT_ANNOTATION,
  AGENT_POLICY_ANNOTATION,
  PREFETCH_ANNOTATION,
  DOWNLOAD_CHECK_ANNOTATION,
];

/** Adds the leader's own record of the attempt to the Node, so that one write contains the signal and the record. */
function withAttempt(object: KubeObject, { source }: Rollout, { target }: Signalling): KubeObject {
  const labels = {
    ...object.metadata.labels,
    [ATTEMPT_LABEL]: attemptLabel(source.uid, target.since),
  };
  return { ...object, metadata: { ...object.metadata, labels } };
}

function attemptLabel(uid: string, created: string): string {
  return `${uid}.${created.replaceAll(/[^0-9A-Za-z.-]/g, '')}`;
}

/**
 * Returns true if it is proven that a leader sent the signal for another rollout or for an earlier run. On a Node, only
 * the label of the leader proves this, because kubelets can write the annotations.
 */
function isProven(
  resource: Resource,
  object: KubeObject,
  signal: SignalData,
  { source, run }: Rollout,
): boolean {
  if (resource !== nodes) return true;
  const label = object.metadata.labels?.[ATTEMPT_LABEL];
  const isOfSignal = label?.endsWith(attemptLabel('', signal.created)) === true;
  if (!isOfSignal || label !== attemptLabel(source.uid, signal.created)) return isOfSignal;
  return run !== undefined && originOf(object, signal)?.uid === source.uid;
}

/**
 * Returns the object with the given status of its signal; undefined if the object has no signal. If `reason` is given,
 * the report of the object gets this reason.
 */
function withStatus(object: KubeObject | undefined, status: string, now: number, reason?: string) {
  const { annotations } = object?.metadata ?? {};
  const signal = decodeSignal(annotations);
  if (!object || !signal) return undefined;
  const { created } = signal;
  const timestamp = rfc3339(now);
  const report =
    reason === undefined
      ? {}
      : encodeReport({ ...decodeReport(annotations, created), created, reason });
  return annotated(object, {
    ...encodeSignal({ ...signal, status: { status, timestamp } }),
    ...report,
  });
}

/**
 * Returns `found` if the Node was already cordoned when the leader sent the signal; otherwise undefined. The leader
 * records this fact together with the signal. `object` has the signal.
 */
export function unnamedCordonOf(
  object: KubeObject | undefined,
  rollout: Rollout,
  role: Role,
): UnnamedCordon | undefined {
  const annotations = object?.metadata.annotations;
  const signal = decodeSignal(annotations);
  if (object === undefined || !signal || !belongs(object, signal, rollout, role)) return undefined;
  return agentPolicyFor(annotations, signal.created).foundCordoned === true ? 'found' : undefined;
}

export function occupantOf(world: World, { name }: Target, plan: KubeObject): string | undefined {
  const node = world.get(nodes, name);
  return node && otherClaimantOn(node, plan);
}

/** Returns a function that finds nodes that work on a signal of another rollout, even if that rollout was deleted. */
export function foreignTargetsAmong(
  objects: Readonly<Record<Role, Resource>>,
): Required<ForeignWorkFinder> {
  const found = (world: World, rollout: Rollout, wanted: boolean): ForeignWork[] =>
    (['controller', 'worker'] as const).flatMap((role) =>
      world.list(objects[role]).flatMap((object) => {
        const signal = decodeSignal(object.metadata.annotations);
        if (!signal || isOver(signal) || belongs(object, signal, rollout, role)) return [];
        if (isProven(objects[role], object, signal, rollout) !== wanted) return [];
        return [{ name: object.metadata.name, role, attempt: signal.created }];
      }),
    );
  return {
    list: (world, rollout) => found(world, rollout, true),
    unproven: (world, rollout) => found(world, rollout, false).map(({ name }) => name),
  };
}

/** The limit for the characters of a step or a time, because the node writes them and the plan repeats them. */
const LONGEST = 64;

const observe = onceForEach((metadata: KubeObject['metadata']): Observation => {
  const signal = decodeSignal(metadata.annotations);
  if (!signal) return { kind: 'none' };
  const { created, status } = signal;
  const report = decodeReport(metadata.annotations, created);
  if (!status) return { kind: 'sent', attempt: created, since: created, ...(report && { report }) };
  const common = { attempt: created, since: status.timestamp.slice(0, LONGEST), report };
  const step = status.status.slice(0, LONGEST);
  switch (step) {
    case 'Completed':
      return { kind: 'succeeded', ...common };
    case 'Failed':
    case 'FailedDownload': {
      const why = report?.reason ?? "see the node's log for the reason";
      const { late, refused } = report ?? {};
      const how = { ...(late && { late }), ...(refused && { refused }) };
      // An agent reports a refusal as a failed download, because that is the only failure that agents of k0s write before
      // they change a node. No download was tried, so the message does not say that one failed.
      const what = refused === true ? 'Refused before the download' : step;
      // Everybody who shows the message says that the node failed, so the message does not repeat it.
      const message = what === 'Failed' ? why : `${what}: ${why}`;
      return { kind: 'failed', ...common, message, ...how };
    }
    default:
      return {
        kind: 'working',
        step,
        ...common,
        ...ownMember(STEPS, step),
        ...stalledBy(report, step),
        ...cordonOf(metadata, created, step),
      };
  }
});

/**
 * The steps at which an agent reports how often the new version has exited. The agent reports this even if it has lost
 * its earlier report.
 */
const CRASHING: readonly string[] = ['Restart', 'RollingBack'];

/**
 * Returns as `stalled` why the step does not progress. The reason is used only if Refit's agent works on the signal;
 * the report of that agent contains the version before the upgrade. A reason without that version is older, and k0s's
 * own agent may work on the signal now. At the steps in `CRASHING`, the reason is always used.
 */
function stalledBy(report: AgentReport | undefined, step: string): { stalled?: string } {
  if (report?.reason === undefined) return {};
  return report.from !== undefined || CRASHING.includes(step) ? { stalled: report.reason } : {};
}

/**
 * Returns `ownsCordon` if the leader must remove the cordon of the Node although no mark names the owner of the cordon.
 * k0s's own agents do not mark their cordons. If k0s's own leader sent the signal, every cordon is removed, as that
 * leader does.
 */
function cordonOf(
  { annotations }: KubeObject['metadata'],
  created: string,
  status: string,
): { ownsCordon?: true } {
  if (status !== 'UnCordoning') return {};
  const isOurs = annotations?.[ROLLOUT_ANNOTATION]?.endsWith(`/${created}`) === true;
  const isOurAgent = decodeReport(annotations, created) !== undefined;
  const isFound = agentPolicyFor(annotations, created).foundCordoned === true;
  // If Refit sent the signal, a cordon is removed only if k0s's own agent set it. This is the case if the agent wrote
  // no report and the node was not cordoned before the signal.
  return !isOurs || (!isOurAgent && !isFound) ? { ownsCordon: true } : {};
}

const STEPS: Readonly<
  Record<
    string,
    { part: TimedStep; waitsFor?: 'drain' | 'uncordon'; cancellable?: boolean } | undefined
  >
> = {
  Downloading: { part: 'download', cancellable: true },
  Cordoning: { part: 'drain', waitsFor: 'drain', cancellable: true },
  ApplyingUpdate: { part: 'apply' },
  Restart: { part: 'restart' },
  UnCordoning: { part: 'ready', waitsFor: 'uncordon' },
  RollingBack: { part: 'restart' },
};
