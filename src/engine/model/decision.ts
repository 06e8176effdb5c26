/** The results of one decision: what targets wait for, and the actions and probes that it chooses. */
import type { ToolName } from '../../coordination/tool.ts';
import type { LifecycleChange } from '../../drain/lifecycle-conditions.ts';
import type { DrainOptions } from '../../drain/pods.ts';
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { Reason } from './reasons.ts';
import { type Payload, type Stage, type Target } from './rollout.ts';

/** A node that stays cordoned, because Refit removes only its own cordons. */
export interface Cordoned {
  readonly target: string;
  /** One sentence that names the node. */
  readonly message: string;
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
