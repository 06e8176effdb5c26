/** The transition table of a target: from its recorded state and the observed state to its phase and the effect. */
import type { Waiting } from '../gates/types.ts';
import type { NodeAction, Observation, TargetPhase } from './decision.ts';
import type { Reason } from './reasons.ts';
import type { RecordedState } from './rollout.ts';

/**
 * What is observed of a target: the kind of the node's own report, or that it waits for the leader (`asking`), does not exist any
 * more (`gone`), or has missed its deadline (`late`).
 */
export type ObservedState = Observation['kind'] | 'asking' | 'gone' | 'late';

export type Effect =
  | 'none'
  /** The target may start when a slot is free for it and the gates pass. */
  | 'schedule'
  /** The target is signalled if the gates still pass and the intent is fresh. */
  | 'signal'
  /** The verifiers are asked, and `done` is recorded once they pass. */
  | 'verify'
  /** The leader cordons, drains or uncordons for the target, or waits for what must happen before. */
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
    Partial<Pick<Waiting, 'ends' | 'recheckMs' | 'until' | 'probe' | 'hookRun'>> {
  readonly next?: RecordedState;
  readonly reason: Reason;
  readonly gate?: string;
  readonly nodeAction?: NodeAction | undefined;
}

const SETTLED = (phase: TargetPhase): Readonly<Record<ObservedState, Row>> => {
  const row: Row = { phase, effect: 'none' };
  return {
    none: row,
    sent: row,
    working: row,
    asking: row,
    succeeded: row,
    failed: row,
    gone: row,
    late: row,
  };
};

export const TRANSITIONS: Readonly<Record<RecordedState, Readonly<Record<ObservedState, Row>>>> = {
  pending: {
    none: { phase: 'pending', effect: 'schedule' },
    sent: { phase: 'signalled', effect: 'adopt' },
    working: { phase: 'working', effect: 'adopt' },
    asking: { phase: 'working', effect: 'adopt' },
    succeeded: { phase: 'verifying', effect: 'adopt' },
    failed: { phase: 'failed', effect: 'fail' },
    gone: { phase: 'pending', effect: 'schedule' },
    // The deadline of a target counts only once its attempt is recorded.
    late: { phase: 'working', effect: 'adopt' },
  },
  intended: {
    // `intend()` in assess/evaluate-target.ts may also let the target wait, give its place back (`pending`), or refuse the target.
    none: { phase: 'intended', effect: 'signal' },
    sent: { phase: 'signalled', effect: 'none' },
    working: { phase: 'working', effect: 'none' },
    asking: { phase: 'working', effect: 'node-action' },
    succeeded: { phase: 'verifying', effect: 'verify' },
    failed: { phase: 'failed', effect: 'fail' },
    gone: { phase: 'failed', effect: 'fail' },
    late: { phase: 'failed', effect: 'fail' },
  },
  done: SETTLED('done'),
  failed: SETTLED('failed'),
  missing: SETTLED('missing'),
  unsupported: SETTLED('unsupported'),
  skipped: SETTLED('skipped'),
};
