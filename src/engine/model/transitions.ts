/** The transition table of a target: recorded state × observation → phase and effect. */
import type { Waiting } from '../gates/types.ts';
import type { NodeAction, Observation, TargetPhase } from './decision.ts';
import type { Reason } from './reasons.ts';
import type { RecordedState } from './rollout.ts';

/** The node's own report, or: it waits for the leader, it is gone, its deadline has passed. */
export type ObservedState = Observation['kind'] | 'asking' | 'gone' | 'late';

export type Effect =
  | 'none'
  /** May start when its turn comes and the gates pass. */
  | 'schedule'
  /** Signal if the gates still pass and the intent is fresh. */
  | 'signal'
  /** Ask the verifiers; record `done` if they pass. */
  | 'verify'
  /** What the leader does for a target that delegates its drain, or what that waits for. */
  | 'node-action'
  /** Record as intended: an earlier leader signalled it, but could not record that. */
  | 'adopt'
  | 'fail';

export interface Row {
  readonly phase: TargetPhase;
  readonly effect: Effect;
}

export interface TargetEvaluation
  extends Row,
    Partial<Pick<Waiting, 'ends' | 'recheckMs' | 'until' | 'probe'>> {
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
    // Its deadline counts once its attempt is recorded.
    late: { phase: 'working', effect: 'adopt' },
  },
  intended: {
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
};
