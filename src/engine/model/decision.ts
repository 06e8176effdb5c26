/** What one decision reads, the observations of a rollout and its targets, and what it decides. */
import type { DrainPreview } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { DrainState } from '../../drain/running-drains.ts';
import type { Node } from '../../kube/resources.ts';
import type { NodeAgent } from '../../signal/agent-presence.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { ApiServer } from '../../versions/plan-rules.ts';
import type { TimedStep } from '../policy/rollout-policy.ts';
import type { Controls } from './controls.ts';
import type { Reason } from './reasons.ts';
import {
  type Payload,
  type RecordedState,
  ROLLOUT_PHASES,
  type Role,
  type Rollout,
  type Stage,
  type Target,
} from './rollout.ts';

/** What the node itself says about the signal of this rollout; `attempt` and `since` are RFC 3339. */
export type Observation =
  /** `begun`: a process that has ended has changed the node: no gate keeps it half done. */
  | { readonly kind: 'none'; readonly begun?: true }
  | (Attempted & { readonly kind: 'sent' })
  | (Attempted & Working & { readonly kind: 'working' })
  | (Attempted & { readonly kind: 'succeeded' })
  /** `late`: the node's own deadline for that step had passed. `refused`: by rules of the node, before any work. */
  | (Attempted & {
      readonly kind: 'failed';
      readonly message: string;
      readonly late?: 'drain' | undefined;
      readonly refused?: boolean | undefined;
    });

interface Attempted {
  /** The name of the attempt: what `since` of the target was when the signal was written. */
  readonly attempt: string;
  readonly since: string;
  readonly report?: TargetReport | undefined;
}

interface Working {
  /** The node's own name for it. */
  readonly step: string;
  /** The step of the policy whose deadline counts; without it only that of the whole target. */
  readonly part?: TimedStep | undefined;
  /** Milliseconds after which the work gives this step up by itself. */
  readonly limitMs?: number | undefined;
  readonly waitsFor?: 'drain' | 'uncordon' | undefined;
  /** True if the Node was cordoned for this attempt by an agent or leader that cannot name an owner. */
  readonly ownsCordon?: boolean | undefined;
  /** Why it does not go on, if anything says so. */
  readonly stalled?: string | undefined;
  /** True while the service is untouched, so that the signal can be cancelled. */
  readonly cancellable?: boolean | undefined;
}

/** Details of a node's report. Only the expected duration of other targets depends on them. */
export interface TargetReport {
  readonly from?: string | undefined;
  /** Milliseconds spent in each finished step. */
  readonly spent?: Readonly<Record<string, number>> | undefined;
  readonly rolledBack?: boolean | undefined;
  /** Why it failed, or has not begun. */
  readonly reason?: string | undefined;
}

export interface TargetFacts {
  readonly exists: boolean;
  /** `<os>-<architecture>`; undefined if the object lacks the labels. */
  readonly platform?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** What shows that its object is a virtual Node, for people; undefined for what may be a host. */
  readonly virtual?: string | undefined;
  /** The node's Ready condition; undefined for objects without conditions. */
  readonly ready?: boolean | undefined;
  /** RFC 3339: the last transition of that condition. */
  readonly readySince?: string | undefined;
  readonly version?: string | undefined;
  /** True if its object proves that it runs the version of its stage already, and nothing is forced. */
  readonly isThere?: boolean | undefined;
  /** The version that the last signal of this rollout asked for; undefined if its object has no such signal. */
  readonly asked?: string | undefined;
  /** True if it is recorded as done, and its object shows that it runs an older version than its stage upgrades to. */
  readonly isBehind?: boolean | undefined;
  /** The Node that its pods run on; undefined if the leader must not cordon it. */
  readonly node?: NodeView | undefined;
  /** When the Node needs the claim of the plan before its target starts; undefined if never. */
  readonly claimNeed?: ClaimNeed | undefined;
  /** True while the watch does not show our own last write of the Node: it may lack earlier writes of others, too. */
  readonly isNodeOutdated?: boolean | undefined;
  /** Whose cordon its Node bears where that names no owner; undefined if every cordon of this dialect names one. */
  readonly unnamedCordon?: UnnamedCordon | 'unknown' | undefined;
  readonly drainDelegation?: boolean | 'unasked' | Unanswered | undefined;
  /** Undefined if there is nothing to drain. */
  readonly drainPreview?: DrainPreview | 'unasked' | Unanswered | undefined;
  readonly drain?: DrainState | undefined;
  /** Milliseconds for which this leader has watched the observation stay the same; undefined for read-only commands. */
  readonly watchedMs?: number | undefined;
  /** Milliseconds for which this leader has watched the attempt, through all its steps. */
  readonly followedMs?: number | undefined;
  /** Whose agent acts on it; undefined if its dialect has no agents. */
  readonly agent?: NodeAgent | undefined;
  /** Why its host cannot run the version of its stage, as a sentence after its name; undefined if nothing is known against it. */
  readonly unfit?: string | undefined;
  /** The plan that has its node, as people name it, or what else keeps the target from starting. */
  readonly occupant?: string | Obstacle | undefined;
  readonly prefetch?: PrefetchState | undefined;
  readonly downloads?: DownloadState | undefined;
  /** The API server refused to change its object: nothing is written for it before the next try. */
  readonly refusal?: Unanswered | undefined;
  readonly observation: Observation;
}

/** `ends`: when it is out of the way. */
export type Obstacle = Readonly<Record<'message' | 'ends', string>>;

/** `outdated`: this rollout asked, but not for what it would ask now. */
export type PrefetchState = 'possible' | 'asked' | 'outdated';

/** Whether the target can download what it needs, as its agent says. */
export interface DownloadState {
  readonly answer: 'unasked' | 'asked' | 'possible' | 'impossible';
  readonly policy?: AgentPolicy | undefined;
  readonly problem?: string | undefined;
  /** Size of the largest file, if it was asked and the server says it. */
  readonly bytes?: number | undefined;
  /** Bytes that there is room for at least; asked or not. */
  readonly room?: number | undefined;
}

/** `always`: with any policy · `with-limit`: only with a limit of unavailable nodes. */
export type ClaimNeed = 'always' | 'with-limit';

/** `found`: it was there before the attempt, and stays. `ours`: it ends with the attempt. */
export type UnnamedCordon = 'found' | 'ours';

/** A node that stays cordoned, because Refit removes only its own cordons. */
export interface Cordoned {
  readonly target: string;
  /** One sentence, with the name. */
  readonly message: string;
}

export interface NodeView {
  readonly name: string;
  readonly unschedulable: boolean;
  readonly cordonOwner: string | undefined;
  /** The rollout that our taint is for, if it has one. */
  readonly taintOwner: string | undefined;
  /** Of the plan that has it, in whatever dialect. */
  readonly claim?: string | undefined;
}

/** Whether the API server of one controller answered `/readyz` with 2xx. */
export interface EndpointHealth {
  readonly name: string;
  readonly ready: boolean;
  /** The answer or error, if not ready. */
  readonly detail?: string;
}

/** A node that works for a rollout other than this one: its plan was deleted, or replaced by this one. */
export interface ForeignWork {
  readonly name: string;
  readonly role: Role;
  /** RFC 3339: when it was signalled; names the attempt. */
  readonly attempt: string;
}

export interface ObservedForeignWork extends ForeignWork {
  /** RFC 3339: when this leader first observed it, whatever the node's clock says. */
  readonly since: string;
  /** Milliseconds until it no longer counts. */
  readonly leftMs: number;
}

export interface Snapshot {
  readonly rollout: Rollout;
  readonly facts: Pick<ReadonlyMap<string, TargetFacts>, 'get'>;
  /** The only names of pending targets that may do something already; absent: all may. */
  readonly observable?: Pick<ReadonlyMap<string | undefined, unknown>, 'has'> | undefined;
  /** Of every controller of the cluster, in the plan or not; undefined before the probe. */
  readonly controlPlane?: readonly EndpointHealth[] | Unanswered | undefined;
  readonly foreignWork: readonly ObservedForeignWork[];
  readonly controls: Controls;
  /** Of a rollout that is over: whether the spec was changed since, and whether no run has begun with it yet. */
  readonly edits?: Readonly<Record<'isAfterEnd' | 'isNew', boolean>> | undefined;
  readonly claim?: string | undefined;
  /** The plan that the work of this one would wait for, on nodes that count as unavailable meanwhile. */
  readonly awaits?: string | undefined;
  /** Unmet preconditions of a new plan; undefined if the dialect has none. */
  readonly preconditions?: readonly Reason[] | 'unasked' | Unanswered | undefined;
  /** Of every API server; undefined if the version skew rules do not apply. */
  readonly apiServers?: readonly ApiServer[] | undefined;
  /** All Nodes: other plans and dialects make them unavailable too. Undefined if they are not watched. */
  readonly fleet?: readonly Node[] | undefined;
  /** Milliseconds within which 90 % of the finished targets were done; undefined before the first. */
  readonly paceMs?: number | undefined;
  /** Milliseconds for which this leader has watched plan and policy ask for the same payloads; undefined for read-only commands. */
  readonly payloadsWatchedMs?: number | undefined;
  /** True if this leader has recorded the rollout since it was woken. */
  readonly hasRecorded?: boolean | undefined;
}

/** Why a target, or without one the whole rollout, waits, and what ends the wait. */
export interface Wait {
  readonly target?: string;
  /** The gate or verifier that says wait, or the phase of the target. */
  readonly gate: string;
  readonly reason: Reason;
  /** A clause for people that follows "when": what ends it, and what they can do about it. */
  readonly ends?: string | undefined;
  /** RFC 3339. */
  readonly since: string;
  /** RFC 3339: the deadline that ends it, if any. */
  readonly until?: string;
  /** True if several targets of the active stage wait for the same; `target` is the first of them. */
  readonly ofStage?: true;
}

/**
 * The phase of a plan that is shown to people. Beside what is recorded, what is true of an ended plan now. edited: it is no
 * longer what was carried out · differs: a target that is done runs an older version · empty: it had no target.
 */
export const PLAN_PHASES = [...ROLLOUT_PHASES, 'edited', 'differs', 'empty'] as const;
export type PlanPhase = (typeof PLAN_PHASES)[number];

/** The phase of a target that is shown to people, from the recorded state and the observation. */
export type TargetPhase = RecordedState | 'signalled' | 'working' | 'verifying';

export interface Signalling {
  readonly stage: Stage;
  readonly target: Target;
  readonly payload?: Payload | undefined;
  readonly agent: AgentPolicy;
}

/** What the leader does for a target beside the signal. Repeating one does no harm. */
export type NodeAction = { readonly stage: Stage; readonly target: Target } & (
  | { readonly kind: 'cordon'; readonly node: string; readonly owner: string }
  | { readonly kind: 'drain'; readonly node: string; readonly options: DrainOptions }
  /** Uncordons the node first, if one is named: only our own cordon, or any with `always`. */
  | {
      readonly kind: 'acknowledge';
      readonly node?: string | undefined;
      readonly uncordon?: 'ours' | 'always' | undefined;
    }
  | { readonly kind: 'cancel'; readonly node?: string | undefined; readonly reason: Reason }
  | { readonly kind: 'taint'; readonly node: string }
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
  | { readonly kind: 'drain-preview'; readonly node: string }
  | { readonly kind: 'drain-delegation'; readonly stage: Stage; readonly target: Target };

/** A probe without an answer: the targets that need one wait until it is repeated. */
export interface Unanswered {
  readonly unanswered: Reason;
  readonly recheckMs: number;
}

export function isUnanswered(given: unknown): given is Unanswered {
  return typeof given === 'object' && given !== null && 'unanswered' in given;
}

export function untilAsked({ unanswered, recheckMs }: Unanswered) {
  return { reason: unanswered, ends: 'the probe gets an answer', recheckMs };
}
