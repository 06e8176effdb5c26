/** Owns the contract of gates and verifiers: checks that answer pass, wait or stop with a reason, from gathered input only. */
import type { EndpointHealth, Stage, Target, TargetFacts } from '../model.ts';
import type { Reason } from '../reasons.ts';

export interface GateInput {
  readonly stage: Stage;
  readonly target: Target;
  readonly facts: TargetFacts;
  readonly controlPlane: readonly EndpointHealth[] | undefined;
}

export type Verdict =
  | { readonly kind: 'pass' }
  /** Ask again when something changes, or after `recheckMs` where no watch would tell. */
  | { readonly kind: 'wait'; readonly reason: Reason; readonly recheckMs?: number }
  /** Waiting cannot help. */
  | { readonly kind: 'stop'; readonly reason: Reason };

export interface Gate {
  readonly name: string;
  evaluate(input: GateInput): Verdict;
}

export const PASS: Verdict = { kind: 'pass' };
