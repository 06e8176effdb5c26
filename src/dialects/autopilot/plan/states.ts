/** Converts the states and the reason in a Plan's status to the states and the reason of the engine. */
import {
  because,
  isReasonCode,
  type Reason,
  type ReasonCode,
} from '../../../engine/model/reasons.ts';
import type { RecordedState, Rollout, RolloutPhase } from '../../../engine/model/rollout.ts';
import { printable } from '../../../util/printable.ts';

const FINAL_STATES = {
  done: 'Completed',
  failed: 'ApplyFailed',
  incomplete: 'IncompleteTargets',
  invalid: 'Warning',
} as const;

export const PLAN_STATES = {
  schedulableWait: 'SchedulableWait',
  schedulable: 'Schedulable',
  completed: FINAL_STATES.done,
} as const;

/** All final states, including the states that only earlier releases or other leaders write. */
const FINAL_PHASES: ReadonlyMap<string, RolloutPhase> = new Map([
  ['Completed', 'done'],
  ['ApplyFailed', 'failed'],
  ['IncompleteTargets', 'incomplete'],
  ['InconsistentTargets', 'incomplete'],
  ['MissingSignalNode', 'incomplete'],
  ['Warning', 'invalid'],
  ['Restricted', 'invalid'],
]);

/**
 * Returns the phase of a Plan. An unknown state counts as final, because Refit must not continue a Plan whose state it
 * does not know.
 */
export function phaseOfPlan(state: string | undefined): RolloutPhase {
  if (!state) return 'new';
  if (state === PLAN_STATES.schedulable || state === PLAN_STATES.schedulableWait) return 'running';
  return FINAL_PHASES.get(state) ?? 'invalid';
}

/**
 * Returns the state to write into the status of a Plan. For some reasons, the original has a special word for the end
 * of a Plan.
 */
export function planStateOf({
  phase,
  blocked,
  reason,
}: Pick<Rollout, 'phase' | 'blocked' | 'reason'>): string {
  if (phase === 'new' || phase === 'running')
    return blocked ? PLAN_STATES.schedulable : PLAN_STATES.schedulableWait;
  if (phase === 'incomplete' && reason?.code === 'ControlPlaneNotReady')
    return 'InconsistentTargets';
  if (phase === 'invalid' && reason?.code === 'Excluded') return 'Restricted';
  return FINAL_STATES[phase];
}

export const TARGET_STATES: Readonly<Record<RecordedState, string>> = {
  pending: 'SignalPending',
  intended: 'SignalSent',
  done: 'SignalCompleted',
  failed: 'SignalApplyFailed',
  missing: 'SignalMissingNode',
  unsupported: 'SignalMissingPlatform',
  // The original has no such state. Its leaders never continue a Plan that has ended.
  skipped: 'SignalSkipped',
};

const RECORDED = new Map(
  Object.entries(TARGET_STATES).map(([recorded, word]) => [word, recorded as RecordedState]),
);

/**
 * Returns the state of a target. An unknown word counts as failed, because a failed target takes no slot and is not
 * done.
 */
export function recordedStateOf(word: string): RecordedState {
  return RECORDED.get(word) ?? 'failed';
}

/** The usual reason of each phase. The recorded text of such a reason does not contain its code. */
const IMPLIED: Readonly<Partial<Record<RolloutPhase, ReasonCode>>> = {
  running: 'TargetFailed',
  failed: 'TargetFailed',
  incomplete: 'TargetMissing',
  invalid: 'InvalidPlan',
};

/** Matches the original's sentence about a removed API. Scripts compare that sentence, so no code may come before it. */
const REMOVED = /^\S+ \S+ has been removed in Kubernetes /;

/** Returns the Kubernetes release in a sentence about a removed API; undefined for other texts. */
export function removedIn(text: string): string | undefined {
  return / has been removed in Kubernetes ([^\s,]+)/.exec(text)?.[1];
}

/**
 * Returns the text to record for a reason. Anybody may have chosen the names and ids in the text, so the text is made
 * printable.
 */
export function textOf({ code, message: said }: Reason, phase: RolloutPhase): string {
  const message = printable(said);
  return code === IMPLIED[phase] || REMOVED.test(message) ? message : `${code}: ${message}`;
}

/** The most characters of an unknown state that a reason repeats. */
const LONGEST_STATE = 64;

/**
 * Returns the reason that the state of an ended Plan alone tells; undefined if it tells none. The leaders of k0s write
 * no text beside these states. In the state `IncompleteTargets`, the states of the targets show which node is missing.
 */
export function reasonOfState(state: string): Reason | undefined {
  if (state === 'InconsistentTargets')
    return because('ControlPlaneNotReady', `an API server was not ready: the state is ${state}`);
  if (state === 'MissingSignalNode')
    return because('TargetMissing', `a node of the plan did not exist: the state is ${state}`);
  if (state === 'Restricted')
    return because('Excluded', `the plan has nodes that it may not update: the state is ${state}`);
  if (phaseOfPlan(state) !== 'invalid' || FINAL_PHASES.has(state)) return undefined;
  const shown = printable(state).slice(0, LONGEST_STATE);
  const message = `the plan has the state "${shown}", which this release of Refit does not know`;
  return because('RecordUnread', message);
}

/** Returns the recorded reason. A text of another leader has no code, so it gets the usual reason of the phase. */
export function reasonOf(text: string, phase: RolloutPhase): Reason {
  if (REMOVED.test(text)) return because('RemovedApis', text);
  const [, code = '', message = ''] = /^(\w+): (.*)$/s.exec(text) ?? [];
  return isReasonCode(code)
    ? because(code, message)
    : because(IMPLIED[phase] ?? 'TargetFailed', text);
}
