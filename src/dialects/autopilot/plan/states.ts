/** Maps the states and the reason in a Plan's status to those of the engine. */
import { because, REASONS, type Reason, type ReasonCode } from '../../../engine/model/reasons.ts';
import type { RecordedState, RolloutPhase } from '../../../engine/model/rollout.ts';
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

/** Every final state, including those that only earlier releases or other leaders write. */
const FINAL_PHASES: ReadonlyMap<string, RolloutPhase> = new Map([
  ['Completed', 'done'],
  ['ApplyFailed', 'failed'],
  ['IncompleteTargets', 'incomplete'],
  ['InconsistentTargets', 'incomplete'],
  ['MissingSignalNode', 'incomplete'],
  ['Warning', 'invalid'],
  ['Restricted', 'invalid'],
]);

/** An unknown state counts as final: Refit must not continue what it does not understand. */
export function phaseOfPlan(state: string | undefined): RolloutPhase {
  if (!state) return 'new';
  if (state === PLAN_STATES.schedulable || state === PLAN_STATES.schedulableWait) return 'running';
  return FINAL_PHASES.get(state) ?? 'invalid';
}

export function planStateOf(phase: RolloutPhase, blocked: boolean): string {
  if (phase === 'new' || phase === 'running')
    return blocked ? PLAN_STATES.schedulable : PLAN_STATES.schedulableWait;
  return FINAL_STATES[phase];
}

export const TARGET_STATES: Readonly<Record<RecordedState, string>> = {
  pending: 'SignalPending',
  intended: 'SignalSent',
  done: 'SignalCompleted',
  failed: 'SignalApplyFailed',
  missing: 'SignalMissingNode',
  unsupported: 'SignalMissingPlatform',
};

const RECORDED = new Map(
  Object.entries(TARGET_STATES).map(([recorded, word]) => [word, recorded as RecordedState]),
);

/** An unknown word counts as failed: it takes no slot and is not done. */
export function recordedStateOf(word: string): RecordedState {
  return RECORDED.get(word) ?? 'failed';
}

/** The usual reason of each phase: its code is left out of the text. */
const IMPLIED: Readonly<Partial<Record<RolloutPhase, ReasonCode>>> = {
  running: 'TargetFailed',
  failed: 'TargetFailed',
  incomplete: 'TargetMissing',
  invalid: 'InvalidPlan',
};

/** The original's own sentence, which scripts compare: it must stay without a code. */
const REMOVED = /^\S+ \S+ has been removed in Kubernetes /;

/** The release that removed the API which such a sentence names. */
export function removedIn(text: string): string | undefined {
  return / has been removed in Kubernetes ([^\s,]+)/.exec(text)?.[1];
}

/** As it is recorded: names and ids in it may come from anybody. */
export function textOf({ code, message: said }: Reason, phase: RolloutPhase): string {
  const message = printable(said);
  return code === IMPLIED[phase] || REMOVED.test(message) ? message : `${code}: ${message}`;
}

/** A text of another leader has no code. */
export function reasonOf(text: string, phase: RolloutPhase): Reason {
  if (REMOVED.test(text)) return because('RemovedApis', text);
  const [, code = '', message = ''] = /^(\w+): (.*)$/s.exec(text) ?? [];
  return isReasonCode(code)
    ? because(code, message)
    : because(IMPLIED[phase] ?? 'TargetFailed', text);
}

function isReasonCode(text: string): text is ReasonCode {
  return Object.hasOwn(REASONS, text);
}
