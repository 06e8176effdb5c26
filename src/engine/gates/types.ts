/** Owns the contract of gates and verifiers: checks that answer pass, wait or stop with a reason, from gathered input only. */
import type { Probe } from '../model/decided.ts';
import type { Snapshot, TargetFacts } from '../model/observed.ts';
import type { Reason } from '../model/reasons.ts';
import type { Stage, Target } from '../model/recorded.ts';
import type { NodeCensus } from '../policy/node-census.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

export interface GateInput extends Pick<Snapshot, 'controlPlane' | 'apiServers' | 'foreignWork' | 'controls'> {
  readonly stage: Stage;
  readonly target: Target;
  readonly facts: TargetFacts;
  /** Stages of the plan that come before this one. */
  readonly earlier: readonly Stage[];
  /** How many targets of the stage may still start, this one included. */
  readonly room: number;
  readonly policy: RolloutPolicy;
  /** Undefined where no limit asks for it. */
  readonly census: NodeCensus | undefined;
  /** Milliseconds that such a target takes, where that was measured. */
  readonly expectedMs: number | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

export type Verdict =
  | { readonly kind: 'pass' }
  | Waiting
  /** Waiting cannot help. `ofPlan`: it is the plan that is wrong, not the target; it ends once nothing is in flight. */
  | { readonly kind: 'stop'; readonly reason: Reason; readonly ofPlan?: true };

/** Ask again when something changes, or after `recheckMs` where no watch would tell. */
export interface Waiting {
  readonly kind: 'wait';
  readonly reason: Reason;
  /** A clause for people that follows "when": what ends the wait, and what they can do about it. */
  readonly ends: string;
  readonly recheckMs?: number;
  /** True for what a moment ends by itself: nobody is told that it holds a target back. */
  readonly isPassing?: true;
  /** RFC 3339: since when the reason holds, where that is known. */
  readonly since?: string | undefined;
  /** RFC 3339: when it ends by itself, where that is known. */
  readonly until?: string | undefined;
  /** What would have to be asked, where the reason is that nobody did. */
  readonly probe?: Probe | undefined;
}

export interface Gate {
  readonly name: string;
  /** True where it says the same of every target, so that asking it once is enough. */
  readonly ofRollout?: boolean;
  evaluate(input: GateInput): Verdict;
}

export const PASS: Verdict = { kind: 'pass' };
