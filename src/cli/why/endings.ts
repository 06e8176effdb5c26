/** Owns what ends each wait, who carries a plan out, and what there is to do once it has failed. */
import type { ReasonCode } from '../../engine/reasons.ts';

/** Clauses; codes that no wait ever has are absent. */
export const ENDINGS: Partial<Record<ReasonCode, string>> = {
  InFlight: 'the node reports that it is done, or that it failed',
  Intended: 'the signal is written',
  Signalled: 'the node answers its signal',
  NoFreeSlot: 'one of those under way is done',
  EarlierStage: 'the earlier stage is done',
  FinishingInFlight: 'those under way come to their end, and the plan with them',
  ControlPlaneNotReady: 'every API server answers that it is ready',
  OthersAtWork: 'those nodes come to their end, or give no sign of life for long enough',
  NodeNotReady: 'the node is Ready',
  InvalidPlan: 'the plan is put right',
};

export interface Operator {
  /** Whose work the plan is. */
  readonly name: string;
  /** What ends the patience with a node under way. */
  readonly limit: string;
  /** What to do once a target has failed, or the plan was refused. */
  readonly mend: string;
}

const AGENT_LIMIT = 'its --target-deadline has passed since the signal (2 h unless set)';

const OPERATORS: Readonly<Record<string, Operator>> = {
  autopilot: {
    name: '`refit controller`',
    limit: AGENT_LIMIT,
    mend: 'mend the cause, delete the plan, and apply it again',
  },
  cattle: {
    name: 'the system-upgrade-controller',
    limit: 'its Job has failed or taken its whole time',
    mend: 'mend the cause and the Plan; a node whose Job failed gets another one with another version',
  },
  kubeadm: {
    name: '`refit kubeadm apply`',
    limit: '2 h have passed since it began',
    mend: 'mend the cause, and run `refit kubeadm apply` again: it goes on where it was left',
  },
  capi: {
    name: '`refit capi-extension`',
    limit: AGENT_LIMIT,
    mend: 'mend the cause, and take the request off the Node: the next call begins anew',
  },
};

const UNKNOWN: Operator = {
  name: 'its own controller',
  limit: 'its time is over',
  mend: 'mend the cause, delete the plan, and apply it again',
};

export function operatorOf(dialect: string): Operator {
  return OPERATORS[dialect] ?? UNKNOWN;
}
