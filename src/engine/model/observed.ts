/** What is observed of a rollout and its targets: everything that one decision looks at. */
import type { DrainPreview } from '../../drain/drain-preview.ts';
import type { Node } from '../../kube/types.ts';
import type { Unanswered } from '../observe/probe-backoff.ts';
import type { TimedStep } from '../policy/rollout-policy.ts';
import type { Controls } from './controls.ts';
import type { Reason } from './reasons.ts';
import type { Role, Rollout } from './recorded.ts';

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
  readonly part?: TimedStep | undefined;
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
  readonly foreignWork: readonly ForeignWork[];
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
