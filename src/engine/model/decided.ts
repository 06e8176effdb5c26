/** A decision: what to record, to signal and to do on nodes, and why the rest waits. */
import type { DrainOptions } from '../../drain/pods.ts';
import type { AgentPolicy } from '../../signal/agent-policy.ts';
import type { Reason } from './reasons.ts';
import type { Payload, Rollout, Stage, Target } from './recorded.ts';

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

/** The phase shown to people, from the recorded state and the observation. */
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
  /** Undefined if the stage has none. */
  readonly payload?: Payload | undefined;
  /** What the policy asks of the agent. */
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
  /** Removes our cordon or taint. */
  | { readonly kind: 'clean-up'; readonly node: string; readonly cordon: boolean; readonly taint: boolean }
);

/** A question that no watch answers. */
export type Probe =
  | { readonly kind: 'control-plane' }
  | { readonly kind: 'preconditions' }
  | { readonly kind: 'drain-preview'; readonly node: string }
  | { readonly kind: 'drain-delegation'; readonly stage: Stage; readonly target: Target };

/** What to do now. With a `record` there are no signals: only recorded intents are signalled. */
export interface Decision {
  readonly record?: Rollout | undefined;
  readonly signals: readonly Signalling[];
  readonly nodeActions: readonly NodeAction[];
  readonly waits: readonly Wait[];
  readonly phases: ReadonlyMap<string, TargetPhase>;
  /** Probes that the decision needs. */
  readonly probes: readonly Probe[];
  /** Milliseconds after which to decide again without an event. */
  readonly recheckAfterMs?: number | undefined;
}
