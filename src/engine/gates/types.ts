/** Owns the contract of gates and verifiers: checks that answer pass, wait or stop with a reason, from gathered input only. */
import type { EndpointHealth, Other, Stage, Target, TargetFacts } from '../model.ts';
import type { Reason } from '../reasons.ts';

export interface GateInput {
  readonly stage: Stage;
  readonly target: Target;
  readonly facts: TargetFacts;
  readonly controlPlane: readonly EndpointHealth[] | undefined;
  readonly others: readonly Other[];
  /** How many targets of the stage may still start, this one included. */
  readonly room: number;
}

export type Verdict =
  | { readonly kind: 'pass' }
  | Waiting
  /** Waiting cannot help. */
  | { readonly kind: 'stop'; readonly reason: Reason };

/** Ask again when something changes, or after `recheckMs` where no watch would tell. */
export interface Waiting {
  readonly kind: 'wait';
  readonly reason: Reason;
  readonly recheckMs?: number;
  /** RFC 3339: since when the reason holds, where that is known. */
  readonly since?: string | undefined;
}

export interface Gate {
  readonly name: string;
  evaluate(input: GateInput): Verdict;
}

export const PASS: Verdict = { kind: 'pass' };
