/** The contract of gates and verifiers: they answer pass, wait or stop with a reason, from gathered input only. */
import type { Probe, Snapshot, TargetFacts } from '../model/decision.ts';
import { because, type Reason, type ReasonCode } from '../model/reasons.ts';
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
  /** Undefined if the policy has no maxUnavailable. */
  readonly census: NodeCensus | undefined;
  /** Milliseconds that such a target takes; undefined before one was measured. */
  readonly expectedMs: number | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

export type Verdict =
  | { readonly kind: 'pass' }
  | Waiting
  /** Waiting cannot help. `ofPlan`: the plan is wrong, not the target; the rollout ends once nothing is in flight. */
  | { readonly kind: 'stop'; readonly reason: Reason; readonly ofPlan?: true };

/** Asked again when something changes, or after `recheckMs` if no watch shows the change. */
export interface Waiting {
  readonly kind: 'wait';
  readonly reason: Reason;
  /** A clause for people that follows "when": what ends the wait, and what they can do about it. */
  readonly ends: string;
  readonly recheckMs?: number;
  /** True for a wait that ends by itself within seconds: no Event or condition reports it. */
  readonly isPassing?: true;
  /** RFC 3339: since when the reason holds, if known. */
  readonly since?: string | undefined;
  /** RFC 3339: when it ends by itself, if known. */
  readonly until?: string | undefined;
  /** The probe whose answer is missing. */
  readonly probe?: Probe | undefined;
}

export interface Gate {
  readonly name: string;
  /** True if it gives every target of the stage the same answer, so that one is enough. */
  readonly ofRollout?: boolean;
  /** True if each target needs its own probe: the scheduler then tries only some targets at a time. */
  readonly probesEachTarget?: boolean;
  /** True if it may stop with `ofPlan`. It must then pass either all targets of a stage with the same version, or none. */
  readonly mayRefusePlan?: boolean;
  evaluate(input: GateInput): Verdict;
}

export const PASS: Verdict = { kind: 'pass' };

type More = Omit<Waiting, 'kind' | 'reason' | 'ends'>;

export function wait(code: ReasonCode, message: string, ends: string, more: More = {}): Waiting {
  return { kind: 'wait', reason: because(code, message), ends, ...more };
}

export function stop(code: ReasonCode, message: string): Verdict {
  return { kind: 'stop', reason: because(code, message) };
}
