/** Owns the engine's vocabulary: what is recorded about a rollout, and what is seen of its targets. Plain data only. */

import type { DrainPreview } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/options.ts';
import type { Node } from '../../kube/types.ts';
import type { AgentPolicy } from '../../signal/agent-policy.ts';
import type { Unanswered } from '../observe/probe-backoff.ts';
import type { Step } from '../policy/rollout-policy.ts';
import type { Controls } from './controls.ts';
import type { Reason } from './reasons.ts';

export type Role = 'controller' | 'worker';

/** What is downloaded so that a target can move: one for each platform. */
export interface Payload {
  readonly url: string;
  /** Lower-case hex; absent where the plan asks for no verification. */
  readonly sha256?: string;
}

/** All that is ever recorded of a target. Whatever is finer than this is read from the node when it is needed. */
export type RecordedState = 'pending' | 'intended' | 'done' | 'failed' | 'missing' | 'unsupported';

export interface Target {
  /** Unique in the rollout. */
  readonly key: string;
  readonly name: string;
  readonly state: RecordedState;
  /** RFC 3339: when the state was recorded. While it is `intended` this also names the attempt. */
  readonly since: string;
}

/** Targets that may move together; stages run strictly one after the other. */
export interface Stage {
  readonly id: string;
  /** Index of the command in the plan that this stage belongs to. */
  readonly command: number;
  readonly role: Role;
  /** How many targets may move at once; controllers never more than one, whatever stands here. */
  readonly maxInFlight: number;
  /** What every target has when it is done, as its plan writes it. */
  readonly version: string;
  /** By platform, `<os>-<architecture>`; absent where targets need nothing that depends on it. */
  readonly payloads?: Readonly<Record<string, Payload>>;
  /** What its targets were selected by, for people; absent where they were listed, or nobody asked for any. */
  readonly selection?: string | undefined;
  /** What is done with the payload, in the words of the dialect; the engine does not look into it. */
  readonly procedure?: string;
  /** True where targets run afterwards what they ran before. */
  readonly keepsVersion?: boolean;
  /** Moves a target even if it already has what the payload would bring. */
  readonly forced: boolean;
  /** A target that failed keeps its slot while the others go on, instead of stopping everything; the stage is not over then. */
  readonly failedHoldSlots?: boolean;
  /** Milliseconds that a target keeps its slot after it succeeded; none where absent. */
  readonly restMs?: number;
  readonly targets: readonly Target[];
}

/**
 * new: nothing is recorded yet · running · done · failed: a target failed · incomplete: a target is missing or its
 * platform is · invalid: the plan cannot be carried out as written.
 */
export type RolloutPhase = 'new' | 'running' | 'done' | 'failed' | 'incomplete' | 'invalid';

export interface Source {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** RFC 3339: when the plan was created. */
  readonly created: string;
}

/** One run of one plan. Frozen when it is made, but for states. */
export interface Rollout {
  readonly source: Source;
  /** The plan's own name for this run: together with the source's uid it names every signal. */
  readonly id: string;
  readonly phase: RolloutPhase;
  /** True while a slot is free, targets are pending, and a gate lets none of them start. */
  readonly blocked: boolean;
  /** Why it ended, where it did not end well. */
  readonly reason?: Reason | undefined;
  readonly stages: readonly Stage[];
  /** What is wrong with the plan as it stands now: nothing starts while this is not empty. */
  readonly problems: readonly Reason[];
  /** Why part of the record cannot be seen: nothing at all is done until it can. */
  readonly unread?: Reason | undefined;
}

/** What the node itself says about the signal of this rollout; `attempt` and `since` are RFC 3339. */
export type Observation =
  | { readonly kind: 'none' }
  | (Seen & { readonly kind: 'sent' })
  | (Seen & Working & { readonly kind: 'working' })
  | (Seen & { readonly kind: 'succeeded' })
  /** `late`: by its own clock it had had all the time that the policy gives that step. */
  | (Seen & { readonly kind: 'failed'; readonly message: string; readonly late?: 'drain' | undefined });

interface Seen {
  /** The name of the attempt: what `since` of the target was when the signal was written. */
  readonly attempt: string;
  readonly since: string;
  readonly report?: TargetReport | undefined;
}

interface Working {
  /** As the node itself calls it. */
  readonly step: string;
  /** Whose deadline counts; only that of the whole target where absent. */
  readonly part?: Step | undefined;
  /** What it waits for, where that is the leader's to do. */
  readonly waitsFor?: 'drain' | 'uncordon' | undefined;
  /** True where whatever cordon its Node has was set for this very work, by whoever could not sign it. */
  readonly ownsCordon?: boolean | undefined;
  /** True while the service is untouched, so that the signal can still be taken back. */
  readonly cancellable?: boolean | undefined;
}

/** What a target tells of itself beyond its step; nothing is decided on it but the pace of others like it. */
export interface TargetReport {
  /** Version that it had before. */
  readonly from?: string | undefined;
  /** Milliseconds spent in each step that is over. */
  readonly spent?: Readonly<Record<string, number>> | undefined;
  /** True where it put back what it had before. */
  readonly rolledBack?: boolean | undefined;
}

/** What the API shows of a target at this moment. */
export interface TargetFacts {
  readonly exists: boolean;
  /** `<os>-<architecture>`, undefined where the object's labels do not tell. */
  readonly platform?: string | undefined;
  /** The node's Ready condition; undefined for objects without conditions. */
  readonly ready?: boolean | undefined;
  /** RFC 3339: since when it is as it is. */
  readonly readySince?: string | undefined;
  /** What runs there now, as its object tells. */
  readonly version?: string | undefined;
  /** The Node that pods run on; undefined where there is none, or none that the leader would cordon. */
  readonly node?: NodeView | undefined;
  /** Whether the target lets the leader cordon, drain and uncordon for it; only asked for where it matters. */
  readonly drainDelegation?: boolean | 'unasked' | Unanswered | undefined;
  /** What a drain would meet; undefined where there is nothing to drain. */
  readonly drainPreview?: DrainPreview | 'unasked' | Unanswered | undefined;
  /** The drain as this process carries it out; undefined where it has not begun one. */
  readonly drain?: DrainView | undefined;
  /** Milliseconds that this process, in its present term, has watched the observation be what it is; undefined where nobody watches. */
  readonly watchedMs?: number | undefined;
  /** As `watchedMs`, of the whole attempt since it is recorded, through all its steps. */
  readonly followedMs?: number | undefined;
  readonly observation: Observation;
}

/** What decisions need to know of a Node that can be cordoned. */
export interface NodeView {
  readonly name: string;
  readonly unschedulable: boolean;
  /** Who cordoned it, where that was Refit. */
  readonly cordonOwner: string | undefined;
  /** For which rollout it carries our taint; undefined where it carries none. */
  readonly taintOwner: string | undefined;
}

/** `since` in milliseconds since the Unix epoch. */
export type DrainView =
  | { readonly kind: 'draining'; readonly since: number; readonly left: number; readonly blockedBy?: string }
  | { readonly kind: 'drained'; readonly since: number }
  | { readonly kind: 'refused'; readonly since: number; readonly reason: string };

/** One controller of the cluster, in the plan or not. */
export interface ApiServerVersion {
  readonly name: string;
  readonly version?: string | undefined;
}

/** Whether the API server of one controller answered `/readyz` with 2xx. */
export interface EndpointHealth {
  readonly name: string;
  readonly ready: boolean;
  /** What was found instead, for people. */
  readonly detail?: string;
}

/** A node that works for a rollout other than this one: its plan was deleted, or replaced by this one. */
export interface ForeignWork {
  readonly name: string;
  readonly role: Role;
  /** RFC 3339: its last sign of life. */
  readonly since: string;
}

export interface Snapshot {
  readonly rollout: Rollout;
  /** By target key. */
  readonly facts: ReadonlyMap<string, TargetFacts>;
  /** Of every controller of the cluster, not only of those in the plan; undefined until somebody asked them. */
  readonly controlPlane?: readonly EndpointHealth[] | Unanswered | undefined;
  readonly others: readonly ForeignWork[];
  readonly controls: Controls;
  /** What stands against a new plan beyond its own text; undefined where the dialect asks for nothing more. */
  readonly preconditions?: readonly Reason[] | 'unasked' | Unanswered | undefined;
  /** What every API server runs, where versions must follow each other; absent where nobody judges them. */
  readonly apiServers?: readonly ApiServerVersion[] | undefined;
  /** Every Node of the cluster. */
  readonly fleet?: readonly Node[] | undefined;
  /** Milliseconds that nine in ten of the targets that are done took; undefined before the first of them. */
  readonly paceMs?: number | undefined;
}

/** Why nothing happens to a target (or, without one, to the whole rollout), and what will end it. */
export interface Wait {
  readonly target?: string;
  /** Name of the gate or verifier that says wait, or the phase that the target is in. */
  readonly gate: string;
  readonly reason: Reason;
  /** RFC 3339. */
  readonly since: string;
  /** RFC 3339: the deadline that ends it, where there is one. */
  readonly until?: string;
  /** True where it holds all targets of the active stage that have not begun, or several: `target` is the first of them. */
  readonly ofStage?: true;
}

/** Where a target is, as shown to people: recorded state and observation taken together. */
export type TargetPhase =
  | 'pending'
  | 'intended'
  | 'signalled'
  | 'working'
  | 'verifying'
  | 'done'
  | 'failed'
  | 'missing'
  | 'unsupported';

export interface Signalling {
  readonly stage: Stage;
  readonly target: Target;
  /** Absent where the stage has none. */
  readonly payload?: Payload | undefined;
  /** What the policy asks of whoever carries it out. */
  readonly agent: AgentPolicy;
}

/** What the leader does for a target beside signalling it; each is harmless when it is repeated. */
export type NodeAction = { readonly stage: Stage; readonly target: Target } & (
  | { readonly kind: 'cordon'; readonly node: string; readonly owner: string }
  | { readonly kind: 'drain'; readonly node: string; readonly options: DrainOptions }
  /** What it asked for is done; where a node is named, its cordon is lifted first: ours, or with `always` anybody's. */
  | {
      readonly kind: 'acknowledge';
      readonly node?: string | undefined;
      readonly uncordon?: 'ours' | 'always' | undefined;
    }
  | { readonly kind: 'cancel'; readonly node?: string | undefined; readonly reason: Reason }
  | { readonly kind: 'taint'; readonly node: string }
  /** Takes away what we left on a node. */
  | { readonly kind: 'clean-up'; readonly node: string; readonly cordon: boolean; readonly taint: boolean }
);

/** What has to be asked for past all watches, before a decision can hang on it. */
export type Probe =
  | { readonly kind: 'control-plane' }
  | { readonly kind: 'preconditions' }
  | { readonly kind: 'drain-preview'; readonly node: string }
  | { readonly kind: 'drain-delegation'; readonly stage: Stage; readonly target: Target };

/** What to do now. `record` comes first, alone: signals are only ever decided for intents that are already recorded. */
export interface Decision {
  readonly record?: Rollout | undefined;
  readonly signals: readonly Signalling[];
  readonly nodeActions: readonly NodeAction[];
  readonly waits: readonly Wait[];
  readonly phases: ReadonlyMap<string, TargetPhase>;
  /** What nobody has asked yet, and stands in the way. */
  readonly probes: readonly Probe[];
  /** Milliseconds after which to decide again although nothing was seen to change. */
  readonly recheckAfterMs?: number | undefined;
}

export function isFinal(rollout: Rollout): boolean {
  return rollout.phase !== 'new' && rollout.phase !== 'running';
}
