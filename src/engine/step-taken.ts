/** Owns what comes of looking at one target: where it is, what is to be recorded of it, and what is to be done. */
import type { Errand, Inquiry, RecordedState, TargetPhase } from './model.ts';
import type { Reason } from './reasons.ts';
import type { Effect } from './transitions.ts';

export interface Progress {
  readonly phase: TargetPhase;
  readonly effect: Effect;
  /** The state to record, where it is not the recorded one. */
  readonly next?: RecordedState;
  /** Why it failed, or what it waits for. */
  readonly reason: Reason;
  /** The gate or verifier that says wait. */
  readonly gate?: string;
  readonly recheckMs?: number | undefined;
  /** RFC 3339: what ends the wait before the deadline of the target does. */
  readonly until?: string | undefined;
  readonly inquiry?: Inquiry | undefined;
  /** What is to be done for it now. */
  readonly errand?: Errand | undefined;
}
