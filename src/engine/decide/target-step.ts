/** Owns what comes of looking at one target: where it is, what is to be recorded of it, and what is to be done. */
import type { NodeAction, Probe, TargetPhase } from '../model/decided.ts';
import type { Reason } from '../model/reasons.ts';
import type { RecordedState } from '../model/recorded.ts';
import type { Effect } from '../model/transitions.ts';

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
  readonly probe?: Probe | undefined;
  /** What is to be done for it now. */
  readonly nodeAction?: NodeAction | undefined;
}
