/**
 * The types of one decision: the data that it reads, what was observed of a rollout and its targets, and the actions
 * that it chooses.
 */

import type { MarkState } from '../../coordination/node-marks.ts';
import type { KnownLock, OtherWork, ToolName } from '../../coordination/tool.ts';
import type { BudgetPods } from '../../drain/budget-pods.ts';
import type { DrainPreview } from '../../drain/drain-preview.ts';
import type { LifecycleChange, LifecycleState } from '../../drain/lifecycle-conditions.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import type { CheckResult } from '../../health/checks.ts';
import type { ComponentReadings } from '../../health/component-monitor.ts';
import type { HookResult } from '../../hooks/rules.ts';
import type { Node } from '../../kube/resources.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import type { AgentPolicy, EtcdSnapshot } from '../../signal/annotations.ts';
import type { Hold } from '../../signal/holds.ts';
import type { ApiServer } from '../../versions/plan-rules.ts';
import type { TimedStep } from '../policy/rollout-policy.ts';
import type { Asked, FailedRequest } from './asked.ts';
import type { AwaitedPlan } from './awaited-plan.ts';
import type { Controls } from './controls.ts';
import type { DecisionsOfPeople } from './decisions-of-people.ts';
import type { DownloadState, PrefetchState } from './downloads.ts';
import type { FailureReasons } from './failures.ts';
import type { JoinedTarget } from './joined-target.ts';
import type { PossibleRollBack } from './possible-roll-back.ts';
import type { Reason } from './reasons.ts';
import { type Payload, type Role, type Rollout, type Stage, type Target } from './rollout.ts';
import type { VersionGap } from './version-gap.ts';

/** What the node itself reports about the signal of this rollout. `attempt` and `since` are in RFC 3339. */
export type Observation =
  /**
   * `begun` is set if an earlier process has changed the node and then ended. No gate may stop such a node, because it
   * would stay half upgraded.
   */
  | { readonly kind: 'none'; readonly begun?: true }
  | (Attempted & { readonly kind: 'sent' })
  | (Attempted & Working & { readonly kind: 'working' })
  | (Attempted & { readonly kind: 'succeeded' })
  /** `late` names a step whose deadline on the node had passed. `refused` is true if rules of the node refused the work before it began. */
  | (Attempted & {
      readonly kind: 'failed';
      readonly message: string;
      readonly late?: 'drain' | undefined;
      readonly refused?: boolean | undefined;
    });

interface Attempted {
  /** The name of the attempt, which is `since` of the target at the time when the signal was written. */
  readonly attempt: string;
  readonly since: string;
  readonly report?: TargetReport | undefined;
  /** True if the work has succeeded, but only an object that may be deleted before the target is done says so. */
  readonly isUnkept?: true | undefined;
}

interface Working {
  /** The name of the step, as the node calls it. */
  readonly step: string;
  /** The step of the policy whose deadline counts. If it is undefined, only the deadline of the whole target counts. */
  readonly part?: TimedStep | undefined;
  /** Milliseconds after which the node itself gives up this step. */
  readonly limitMs?: number | undefined;
  readonly waitsFor?: 'drain' | 'uncordon' | undefined;
  /**
   * True if the work has ended well and the target waits only for its uncordon. Then the node is uncordoned at once, and
   * the verifiers are asked afterwards.
   */
  readonly hasEnded?: true | undefined;
  /** True if the Node was cordoned for this attempt by an agent or leader that cannot name an owner. */
  readonly ownsCordon?: boolean | undefined;
  /** The reason why the work does not continue; undefined if no reason is known. */
  readonly stalled?: string | undefined;
  /** True as long as the service on the node was not changed, so that the signal can still be cancelled. */
  readonly cancellable?: boolean | undefined;
}

/**
 * Details from the report of a node. The only decision that uses them computes the expected duration of other targets.
 */
export interface TargetReport {
  readonly from?: string | undefined;
  /** Milliseconds spent in each finished step. */
  readonly spent?: Readonly<Record<string, number>> | undefined;
  readonly rolledBack?: boolean | undefined;
  /** The version of the kept binary that was removed to make room for the download. */
  readonly removed?: string | undefined;
  /** The version whose airgap bundles were removed to make room for the download. */
  readonly removedBundle?: string | undefined;
  /** The snapshot that the target took of its data before it was changed. */
  readonly etcdSnapshot?: EtcdSnapshot | undefined;
  /** The reason why the work failed or has not begun. */
  readonly reason?: string | undefined;
}

export interface TargetFacts {
  readonly exists: boolean;
  /** A clause about the object that was probably meant by the name of a target that does not exist; undefined if there is none. */
  readonly meant?: string | undefined;
  /** `<os>-<architecture>`; undefined if the object lacks the labels. */
  readonly platform?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * The sign that shows that the target's object is a virtual Node, in words for people; undefined if the object may be
   * a host.
   */
  readonly virtual?: string | undefined;
  /** The status of the node's Ready condition; undefined for objects without conditions. */
  readonly ready?: boolean | undefined;
  /** The last transition of the Ready condition, in RFC 3339. */
  readonly readySince?: string | undefined;
  readonly version?: string | undefined;
  /**
   * The version that the target ran before this rollout upgraded it, as a record on its object says; undefined if no
   * record says it.
   */
  readonly earlierVersion?: string | undefined;
  /** The time at which the object was created, in RFC 3339. */
  readonly created?: string | undefined;
  /** True if the object proves that the target already runs the version of its stage, and the upgrade is not forced. */
  readonly isThere?: boolean | undefined;
  /**
   * The uid of the plan for which the leader last signalled the target; undefined if the leader never signalled the
   * target.
   */
  readonly signalledBy?: string | undefined;
  /**
   * The version that the last signal of this rollout requested; undefined if the object has no signal of this rollout.
   */
  readonly asked?: string | undefined;
  /**
   * What the target lacks although its work has succeeded: its kubelet does not report the version that the work
   * installed. Undefined if nothing is missing, or if success of the work is enough.
   */
  readonly versionGap?: VersionGap | undefined;
  /** True if the target is recorded as done, but its object shows an older version than the version of its stage. */
  readonly isBehind?: boolean | undefined;
  /** The Node on which the pods of the target run; undefined if the leader must not cordon it. */
  readonly node?: NodeView | undefined;
  /**
   * The policies under which the Node must carry the claim of the plan before its target starts; undefined if the Node
   * never needs a claim.
   */
  readonly claimNeed?: ClaimNeed | undefined;
  /**
   * True while the watch does not show the last write of this process to the Node. In this case the watch may also lack
   * earlier writes of other processes.
   */
  readonly isNodeOutdated?: boolean | undefined;
  /** Says who set a cordon that names no owner; undefined if every cordon of this dialect names its owner. */
  readonly unnamedCordon?: UnnamedCordon | 'unknown' | undefined;
  /** Whether the target lets the leader drain its node. `never`: the target has no node to drain, or does not exist. */
  readonly drainDelegation: Asked<boolean>;
  /** The preview of the target's drain. `never`: there is nothing to drain, or this process previews no drains. */
  readonly drainPreview: Asked<DrainPreview>;
  /** Milliseconds for which this leader has found the drain blocked; undefined if it is not blocked, or for read-only commands. */
  readonly blockedMs?: number | undefined;
  readonly drain?: DrainState | undefined;
  /** Milliseconds for which this leader has watched the observation stay the same; undefined for read-only commands. */
  readonly watchedMs?: number | undefined;
  /** Milliseconds for which this leader has watched the attempt, through all steps of the attempt; undefined for read-only commands. */
  readonly followedMs?: number | undefined;
  /** The agent that acts on the target; undefined if the dialect has no agents. */
  readonly agent?: NodeAgent | undefined;
  /**
   * The reason why the host cannot run the version of its stage, as a clause that follows the name of the node; undefined if no
   * reason is known.
   */
  readonly unfit?: string | undefined;
  /**
   * The plan that works on the node, as people name it, or another obstacle that keeps the target from starting; undefined if there is
   * none.
   */
  readonly occupant?: string | Obstacle | undefined;
  readonly prefetch?: PrefetchState | undefined;
  readonly downloads?: DownloadState | undefined;
  /** The hold by which a person keeps plans from starting on the target; undefined if there is none. The hold may be over already. */
  readonly hold?: Hold | undefined;
  /** What other tools do to the Node, as far as the Node shows it; undefined if the Node is unknown. */
  readonly otherWork?: readonly OtherWork[] | undefined;
  /** The answer of the API server that refused to change the target's object. Nothing is written for the target before the next try. */
  readonly refusal?: FailedRequest | undefined;
  /**
   * The answer with which the API server refused to write the lifecycle conditions of the Node. The leader does not write them before the
   * next try.
   */
  readonly announcementRefusal?: FailedRequest | undefined;
  /**
   * The duration of the last successful upgrade of the target by an earlier stage or plan, in milliseconds; undefined
   * if it is unknown.
   */
  readonly earlierMs?: number | undefined;
  readonly observation: Observation;
}

/** Something that keeps a target from starting. `ends` is a clause that says when the target may start. */
export type Obstacle = Readonly<Record<'message' | 'ends', string>>;

/**
 * Says under which policies a target needs a claim on its Node. `always`: under any policy · `with-limit`: only if the
 * policy limits how many nodes may be unavailable.
 */
export type ClaimNeed = 'always' | 'with-limit';

/**
 * Says who set a cordon that names no owner. `found`: the node was already cordoned before the attempt, and stays
 * cordoned. `ours`: the cordon was set for the attempt and is removed with it.
 */
export type UnnamedCordon = 'found' | 'ours';

/** A node that stays cordoned, because Refit removes only its own cordons. */
export interface Cordoned {
  readonly target: string;
  /** One sentence that names the node. */
  readonly message: string;
}

export interface NodeView {
  readonly name: string;
  readonly unschedulable: boolean;
  readonly cordonOwner: string | undefined;
  /** The rollout that owns the Refit taint of the Node; undefined if the Node has no such taint. */
  readonly taintOwner: string | undefined;
  /** The annotations that make other tools leave the Node alone; undefined in tests without such annotations. */
  readonly marks?: readonly MarkState[] | undefined;
  /** The lifecycle conditions of the Node that are True; undefined in tests without such conditions. */
  readonly lifecycle?: readonly LifecycleState[] | undefined;
  /** Who excluded the Node from external load balancers; undefined if nobody did. */
  readonly exclusion?: 'ours' | 'others' | undefined;
  /** The claim on the Node by a plan of any dialect; undefined if no plan has claimed the Node. */
  readonly claim?: string | undefined;
}

/** Whether the API server of one controller answered `/readyz` with 2xx. */
export interface EndpointHealth {
  readonly name: string;
  readonly ready: boolean;
  /** True if there was no answer. Perhaps the process that sent the request has no route to the API server. */
  readonly isSilent?: true;
  /** The answer or the error of an API server that is not ready. */
  readonly detail?: string;
}

/**
 * A node that still works for another rollout, because the plan of that rollout was deleted, or was replaced by this
 * plan.
 */
export interface ForeignWork {
  readonly name: string;
  readonly role: Role;
  /** The time of the signal in RFC 3339. It names the attempt. */
  readonly attempt: string;
}

export interface ObservedForeignWork extends ForeignWork {
  /** The time at which this leader first observed the work, in RFC 3339, by the leader's own clock. */
  readonly since: string;
  /** Milliseconds until the work no longer counts. */
  readonly leftMs: number;
}

export interface Snapshot {
  readonly rollout: Rollout;
  /** The targets that joined after the plan began; undefined if the dialect itself adds such targets to the plan. */
  readonly joined?: readonly JoinedTarget[] | undefined;
  readonly facts: Pick<ReadonlyMap<string, TargetFacts>, 'get'> & {
    /**
     * Returns the labels of one target without its other facts; undefined if the target has no object. A snapshot that
     * was read back from stored data does not have this function.
     */
    readonly labelsOf?: (key: string) => Readonly<Record<string, string>> | undefined;
    /**
     * Returns the name of one target's Node without its other facts; undefined if the Node is unknown, or has the same
     * name as the target.
     */
    readonly nodeNameOf?: (key: string) => string | undefined;
  };
  /**
   * The names of pending targets that may already be doing something. If this member is undefined, every pending target
   * may already be doing something.
   */
  readonly observable?: Pick<ReadonlyMap<string | undefined, unknown>, 'has'> | undefined;
  /** The health of every API server of the cluster, whether the plan lists its controller or not. */
  readonly controlPlane: Asked<readonly EndpointHealth[]>;
  /**
   * What is known about the controller manager and the scheduler. For a command, `told` is the message of the leader
   * about them. `never`: this process or this dialect does not watch them.
   */
  readonly components: Asked<ComponentReadings | { readonly told: string }>;
  /** The last results of the health checks of the policy; undefined for processes that run no health checks. */
  readonly health?: readonly CheckResult[] | undefined;
  /**
   * The decisions of people about all runs of the plan, from its NodeRollout. The NodeRollout is read only when a
   * decision depends on it. `never`: this process does not read it.
   */
  readonly decisions: Asked<DecisionsOfPeople>;
  /**
   * What is known about the locks of other tools. A lock that was not read yet is missing from the list. Undefined for
   * processes that read no locks.
   */
  readonly locks?: readonly KnownLock[] | undefined;
  /** What is known about the runs of hooks; undefined for processes that carry out no hooks. */
  readonly hooks?: readonly HookResult[] | undefined;
  /**
   * Why targets failed, as this leader decided in its term, or for a command, as the NodeRollout shows it. Undefined
   * if nothing is known.
   */
  readonly failures?: FailureReasons | undefined;
  /**
   * The pods that PodDisruptionBudgets cover, for policies that sort targets by these pods. `never`: this process does
   * not count them.
   */
  readonly budgetPods: Asked<BudgetPods>;
  readonly foreignWork: readonly ObservedForeignWork[];
  readonly controls: Controls;
  /**
   * Undefined while the rollout runs. `isAfterEnd` is true if the spec was changed after the end of the rollout, and undefined if it is not
   * known with which spec the rollout ended; `isNew` is true if no run
   * has begun with that change yet.
   */
  readonly edits?:
    | { readonly isAfterEnd: boolean | undefined; readonly isNew: boolean }
    | undefined;
  /** True if the record of the rollout can store the spec with which the rollout started. */
  readonly canIgnoreEdits?: boolean | undefined;
  /** True if the record of the rollout can store that a target was skipped. */
  readonly canSkip?: boolean | undefined;
  /** True if the leader may order retries of failed targets by itself. */
  readonly canRetry?: boolean | undefined;
  readonly claim?: string | undefined;
  /**
   * The owner that the leader writes into the marks (labels, annotations and locks) that it sets for other tools because of this plan. It
   * is the text of the plan's claim, also in dialects without claims.
   */
  readonly markOwner?: string | undefined;
  /**
   * Another plan that must end before the targets of this plan can do their work. A target that started now would only make its
   * node unavailable.
   */
  readonly awaits?: AwaitedPlan | undefined;
  /** The unmet preconditions of a new plan. `never`: the dialect has no preconditions, or this process does not check them. */
  readonly preconditions: Asked<readonly Reason[]>;
  /** Every API server; undefined if the version skew rules do not apply. */
  readonly apiServers?: readonly ApiServer[] | undefined;
  /**
   * The most minor versions by which the distribution supports kubelets that are older than an API server; undefined if
   * only the policy of Kubernetes limits that.
   */
  readonly mostBehind?: number | undefined;
  /**
   * True if a target waits while it breaks a version skew rule; false if the whole plan is refused. Plans that never end
   * wait, because their nodes and their version change.
   */
  readonly waitsForVersions?: boolean | undefined;
  /**
   * All Nodes, because other plans and dialects make Nodes unavailable, too; undefined if Nodes are
   * not watched.
   */
  readonly fleet?: readonly Node[] | undefined;
  /**
   * Milliseconds within which 90 % of the finished targets were done; undefined before two targets have reported their
   * times.
   */
  readonly paceMs?: number | undefined;
  /** Milliseconds within which 50 % of the finished targets were done. No decision depends on this value. */
  readonly usualMs?: number | undefined;
  /** Milliseconds within which 10 % of the finished targets were done. No decision depends on this value. */
  readonly fastMs?: number | undefined;
  /**
   * For each id of a stage, the duration in milliseconds within which 90 % of its targets were done the last time. It
   * is the expected duration of a target if the last duration of that target is unknown. Undefined when `paceMs` is
   * known.
   */
  readonly earlierMs?: Readonly<Record<string, number>> | undefined;
  /** Milliseconds for which this leader has watched plan and policy ask for the same payloads; undefined for read-only commands. */
  readonly payloadsWatchedMs?: number | undefined;
  /**
   * How the leader could roll a failed run back; undefined unless the rollout has failed. `unrecorded`: the NodeRollout does not show the
   * end of the run yet, or was not read.
   */
  readonly rollBack?: PossibleRollBack | undefined;
  /**
   * Returns the snapshot that a leader would have before the first start of the plan that rolls the run back. Set if
   * `rollBack` contains such a plan.
   */
  readonly ofRollBack?: (() => Snapshot) | undefined;
  /** True if this leader has already recorded the rollout in the present reconcile. */
  readonly hasRecorded?: boolean | undefined;
}

/** A wait of one target, or of the whole rollout if `target` is undefined: its reason, and what ends it. */
export interface Wait {
  readonly target?: string;
  /** The gate or verifier that makes the target wait, or else the phase of the target. */
  readonly gate: string;
  readonly reason: Reason;
  /** A clause that follows "when". It says what ends the wait, and what people can do about it. */
  readonly ends?: string | undefined;
  /** The time since which the wait lasts, in RFC 3339. */
  readonly since: string;
  /** The time of the deadline that ends the wait, in RFC 3339; undefined if there is no deadline. */
  readonly until?: string;
  /** True if several targets of the active stage have the same wait. Then `target` is the first of them. */
  readonly ofStage?: true;
  /** The number of the wave that needs approval; the first wave is 1. Undefined for every other wait. */
  readonly unapproved?: number;
  /** The names of Nodes whose cordon makes the target wait, although no plan works on them. */
  readonly uncordon?: readonly string[];
  /** The names of the first targets that must be done before this target starts. Undefined if the order does not hold it back. */
  readonly after?: readonly string[];
}

export interface Signalling {
  readonly stage: Stage;
  readonly target: Target;
  readonly payload?: Payload | undefined;
  readonly agent: AgentPolicy;
}

/** What the leader does for a target in addition to the signal. A repeated node action does no harm. */
export type NodeAction = { readonly stage: Stage; readonly target: Target } & (
  | {
      readonly kind: 'cordon';
      readonly node: string;
      readonly owner: string;
      /** True if the Node is excluded from external load balancers in the same write. */
      readonly excludes?: boolean;
    }
  | { readonly kind: 'drain'; readonly node: string; readonly options: DrainOptions }
  /**
   * An acknowledgement that first uncordons the node, if a node is named. `ours` removes only our own cordon, and `always` removes
   * any cordon.
   */
  | {
      readonly kind: 'acknowledge';
      readonly node?: string | undefined;
      readonly uncordon?: 'ours' | 'always' | undefined;
    }
  | { readonly kind: 'cancel'; readonly node?: string | undefined; readonly reason: Reason }
  | { readonly kind: 'taint'; readonly node: string }
  /** Keeps the success that the target reports, because its report may be deleted before the target is done. */
  | { readonly kind: 'keep-report'; readonly node: string }
  /** Sets the marks on the Node that make these tools leave it alone. */
  | {
      readonly kind: 'protect';
      readonly node: string;
      readonly owner: string;
      readonly tools: readonly ToolName[];
    }
  /** Sets and clears the lifecycle conditions of the Node. */
  | {
      readonly kind: 'announce';
      readonly node: string;
      readonly owner: string;
      readonly change: LifecycleChange;
    }
  | {
      readonly kind: 'prefetch' | 'check-downloads';
      readonly node?: undefined;
      readonly agent: AgentPolicy;
    }
  | { readonly kind: 'end-prefetch'; readonly node?: undefined }
  | {
      readonly kind: 'clean-up';
      readonly node: string;
      readonly cordon: boolean;
      readonly taint: boolean;
    }
);

export type Probe =
  | { readonly kind: 'control-plane' }
  | { readonly kind: 'preconditions' }
  | { readonly kind: 'decisions' }
  | { readonly kind: 'drain-preview'; readonly node: string }
  | { readonly kind: 'drain-delegation'; readonly stage: Stage; readonly target: Target };
