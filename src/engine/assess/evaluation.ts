/** The result of the evaluation of a target: its phase, the effect, the state to record, and the reason. */
import type { Waiting } from '../gates/types.ts';
import type { NodeAction } from '../model/decision.ts';
import type { Observation } from '../model/facts.ts';
import type { Reason } from '../model/reasons.ts';
import type { RecordedState } from '../model/rollout.ts';
import type { TargetPhase } from '../model/shown-phases.ts';

/**
 * The state of a target that the leader observes. It is the kind of the report of the node; `asking` if the target
 * waits for the leader; `gone` if the target does not exist any more; `late` if the target has missed a deadline.
 */
export type ObservedState = Observation['kind'] | 'asking' | 'gone' | 'late';

export type Effect =
  | 'none'
  /** The target may start when a slot is free for it and the gates pass. */
  | 'schedule'
  /** The target is signalled if the gates still pass and its intent is not too old. */
  | 'signal'
  /** The verifiers are evaluated, and `done` is recorded when they pass. */
  | 'verify'
  /**
   * The leader cordons, drains or uncordons the node of the target, or waits until the requirements of this action are
   * met.
   */
  | 'node-action'
  /** The target is recorded as intended, because an earlier leader signalled it but could not record that. */
  | 'adopt'
  | 'fail';

export interface Row {
  readonly phase: TargetPhase;
  readonly effect: Effect;
}

export interface TargetEvaluation
  extends Row,
    Partial<Pick<Waiting, 'ends' | 'recheckMs' | 'until' | 'probe' | 'hookRun' | 'uncordon'>> {
  readonly next?: RecordedState;
  readonly reason: Reason;
  readonly gate?: string;
  readonly nodeAction?: NodeAction | undefined;
}
