/** The facts about one target: what its object, its Node and this process show of it. */
import type { MarkState } from '../../coordination/node-marks.ts';
import type { OtherWork } from '../../coordination/tool.ts';
import type { DrainPreview } from '../../drain/drain-preview.ts';
import type { LifecycleState } from '../../drain/lifecycle-conditions.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import type { EtcdSnapshot } from '../../signal/annotations.ts';
import type { Hold } from '../../signal/holds.ts';
import type { TimedStep } from '../policy/rollout-policy.ts';
import type { Asked, FailedRequest } from './asked.ts';
import type { DownloadState, PrefetchState, RequiredDownload } from './downloads.ts';
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
      /** True if the failed work has left its node changed, so that only a later attempt may remove the cordon. */
      readonly isHalfDone?: boolean | undefined;
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
 * Details from the report of a node. Only two decisions use them: the expected duration of other targets, and the wait
 * for the components of the control plane.
 */
export interface TargetReport {
  readonly from?: string | undefined;
  /** Milliseconds spent in each finished step. */
  readonly spent?: Readonly<Record<string, number>> | undefined;
  /** Milliseconds for which the upgraded service had worked when the target reported that its work has ended. */
  readonly upMs?: number | undefined;
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
  readonly meant: string | undefined;
  /** `<os>-<architecture>`; undefined if the object lacks the labels. */
  readonly platform: string | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
  /**
   * The sign that shows that the target's object is a virtual Node, in words for people; undefined if the object may be
   * a host.
   */
  readonly virtual: string | undefined;
  /** The status of the node's Ready condition; undefined for objects without conditions. */
  readonly ready: boolean | undefined;
  /** The last transition of the Ready condition, in RFC 3339. */
  readonly readySince: string | undefined;
  readonly version: string | undefined;
  /**
   * The version that the target ran before this rollout upgraded it, as a record on its object says; undefined if no
   * record says it.
   */
  readonly earlierVersion: string | undefined;
  /** The time at which the object was created, in RFC 3339. */
  readonly created: string | undefined;
  /** True if the object proves that the target already runs the version of its stage, and the upgrade is not forced. */
  readonly isThere: boolean;
  /**
   * The uid of the plan for which the leader last signalled the target; undefined if the leader never signalled the
   * target.
   */
  readonly signalledBy: string | undefined;
  /**
   * The version that the last signal of this rollout requested; undefined if the object has no signal of this rollout,
   * or if the dialect has another rollout for each version. `versionAsked` reads it.
   */
  readonly asked: string | undefined;
  /**
   * What the target lacks although its work has succeeded: its kubelet does not report the version that the work
   * installed. Undefined if nothing is missing, or if success of the work is enough.
   */
  readonly versionGap: VersionGap | undefined;
  /** True if the target is recorded as done, but its object shows an older version than the version of its stage. */
  readonly isBehind: boolean;
  /** The Node on which the pods of the target run; undefined if the leader must not cordon it. */
  readonly node: NodeView | undefined;
  /**
   * The policies under which the Node must carry the claim of the plan before its target starts; undefined if the Node
   * never needs a claim.
   */
  readonly claimNeed: ClaimNeed | undefined;
  /**
   * True while the watch does not show the last write of this process to the Node. In this case the watch may also lack
   * earlier writes of other processes.
   */
  readonly isNodeOutdated: boolean;
  /** Whether the target lets the leader drain its node. `never`: the target has no node to drain, or does not exist. */
  readonly drainDelegation: Asked<boolean>;
  /** The preview of the target's drain. `never`: there is nothing to drain, or this process previews no drains. */
  readonly drainPreview: Asked<DrainPreview>;
  /** Milliseconds for which this leader has found the drain blocked; undefined if it is not blocked, or for read-only commands. */
  readonly blockedMs: number | undefined;
  readonly drain: DrainState | undefined;
  /** Milliseconds for which this leader has watched the observation stay the same; undefined for read-only commands. */
  readonly watchedMs: number | undefined;
  /** Milliseconds for which this leader has watched the attempt, through all steps of the attempt; undefined for read-only commands. */
  readonly followedMs: number | undefined;
  /** The agent that acts on the target; undefined if the dialect has no agents. */
  readonly agent: NodeAgent | undefined;
  /** The name of the object for whose sake the target is upgraded, if people know the target by this name, too. */
  readonly subject: string | undefined;
  /**
   * The reason why the host cannot run the version of its stage, as a clause that follows the name of the node; undefined if no
   * reason is known.
   */
  readonly unfit: string | undefined;
  readonly prefetch: PrefetchState | undefined;
  readonly downloads: DownloadState | undefined;
  /** The download that the target must complete before its node is cordoned; undefined if it may start without one. */
  readonly requiredDownload: RequiredDownload | undefined;
  /** The hold by which a person keeps plans from starting on the target; undefined if there is none. The hold may be over already. */
  readonly hold: Hold | undefined;
  /** The answer of the API server that refused to change the target's object. Nothing is written for the target before the next try. */
  readonly refusal: FailedRequest | undefined;
  /**
   * The answer with which the API server refused to write the lifecycle conditions of the Node. The leader does not write them before the
   * next try.
   */
  readonly announcementRefusal: FailedRequest | undefined;
  readonly observation: Observation;
}

/** Facts about a target that depend on more objects than its own. Each of them is computed only when a decision needs it. */
export interface LateFacts {
  /**
   * The plan that works on the node, as people name it, or another obstacle that keeps the target from starting; undefined if there is
   * none.
   */
  readonly occupant: string | Obstacle | undefined;
  /** What other tools do to the Node, as far as the Node shows it. */
  readonly otherWork: readonly OtherWork[];
  /** Says who set a cordon that names no owner; undefined if every cordon of this dialect names its owner. */
  readonly unnamedCordon: UnnamedCordon | 'unknown' | undefined;
  /**
   * The duration of the last successful upgrade of the target by an earlier stage or plan, in milliseconds; undefined
   * if it is unknown.
   */
  readonly earlierMs: number | undefined;
}

/** Something that keeps a target from starting. */
export interface Obstacle {
  readonly message: string;
  /** A clause that says when the target may start. */
  readonly ends: string;
  /** True if another controller has not chosen the target yet. Such a wait is usual, so nobody is told of it. */
  readonly isUnchosen?: true;
}

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
