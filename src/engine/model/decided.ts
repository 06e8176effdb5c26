/** What is decided: what to record, to signal and to do on nodes, and why the rest waits. */
import type { DrainOptions } from '../../drain/pods.ts';
import type { AgentPolicy } from '../../signal/agent-policy.ts';
import type { Reason } from './reasons.ts';
import type { Payload, Rollout, Stage, Target } from './recorded.ts';

/** Why nothing happens to a target (or, without one, to the whole rollout), and what will end it. */
export interface Wait {
  readonly target?: string;
  /** Name of the gate or verifier that says wait, or the phase that the target is in. */
  readonly gate: string;
  readonly reason: Reason;
  /** A clause for people that follows "when": what ends it, and what they can do about it. */
  readonly ends?: string | undefined;
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
