/** Owns the transition table of a target as data: what is recorded × what is seen → where it is, and what follows. */
import type { NodeAction, Probe, TargetPhase } from './decided.ts';
import type { Observation } from './observed.ts';
import type { Reason } from './reasons.ts';
import type { RecordedState } from './recorded.ts';

/**
 * What can be seen of a target: the node's own words, that it waits for the leader, that there is no node, or that its
 * time is over.
 */
export type ObservedState = Observation['kind'] | 'asking' | 'gone' | 'late';

export type Effect =
  | 'none'
  /** May start when its turn comes and the gates pass. */
  | 'schedule'
  /** Signal where the gates still pass and the intent is fresh. */
  | 'signal'
  /** Ask the verifiers; where they pass, record `done`. */
  | 'verify'
  /** Do what it asks for. */
  | 'assist'
  /** Record as intended what is already under way: another leader signalled it and could not record that. */
  | 'adopt'
  | 'fail';

export interface Row {
  readonly phase: TargetPhase;
  readonly effect: Effect;
}

/** What follows for one target from what is recorded and observed of it. */
export interface TargetEvaluation {
  readonly phase: TargetPhase;
  readonly effect: Effect;
  /** The state to record, if it changes. */
  readonly next?: RecordedState;
  /** Why it failed or waits. */
  readonly reason: Reason;
  /** What ends the wait, as a clause that follows "when". */
  readonly ends?: string | undefined;
  /** The gate or verifier that it waits for. */
  readonly gate?: string;
  readonly recheckMs?: number | undefined;
  /** RFC 3339: when the wait ends, if before the target's deadline. */
  readonly until?: string | undefined;
  readonly probe?: Probe | undefined;
  readonly nodeAction?: NodeAction | undefined;
}

const SETTLED = (phase: TargetPhase): Readonly<Record<ObservedState, Row>> => {
  const row: Row = { phase, effect: 'none' };
  return { none: row, sent: row, working: row, asking: row, succeeded: row, failed: row, gone: row, late: row };
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
    // How long it waited says nothing of its attempt: once that is recorded, its own deadline counts.
    late: { phase: 'working', effect: 'adopt' },
  },
  intended: {
    none: { phase: 'intended', effect: 'signal' },
    sent: { phase: 'signalled', effect: 'none' },
    working: { phase: 'working', effect: 'none' },
    asking: { phase: 'working', effect: 'assist' },
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
