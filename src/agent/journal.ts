/** Owns the agent's memory: which signal it works on and how far it got, with the pure transitions each step makes. */
import type { ProcessId } from './host.ts';
import type { Outcome, Step } from './step.ts';
import type { Work } from './work.ts';

/**
 * How far the work got. A phase that ends in -ing was written before its step and says that the step may be half done:
 *
 *     started → downloaded → ready → kept → swapping → swapped → restarting → restarted → proven
 *                                                └──────────┴───────────┴──────────┴→ restoring → restored → reviving → revived
 *     failed: from any phase that has not changed what the target path holds, and from a roll-back that did not work
 */
export type Phase =
  | 'started'
  | 'downloaded'
  | 'ready'
  | 'kept'
  | 'swapping'
  | 'swapped'
  | 'restarting'
  | 'restarted'
  | 'proven'
  | 'restoring'
  | 'restored'
  | 'reviving'
  | 'revived'
  | 'failed';

export interface Failure {
  readonly status: 'FailedDownload' | 'Failed';
  readonly reason: string;
}

export interface ActiveJournal {
  readonly phase: Phase;
  readonly work: Work;
  /** Process that the last restart ends. */
  readonly process?: ProcessId;
  /** Steady milliseconds at which the last restart began. */
  readonly since?: number;
  /** Why the work ends badly, once it does. */
  readonly failure?: Failure;
  /** The status on the object, and the steady milliseconds at which it was entered. */
  readonly entered?: { readonly status: string; readonly at: number };
  /** Milliseconds spent in each status that is over. */
  readonly spent: Readonly<Record<string, number>>;
}

export type Journal = { readonly phase: 'idle' } | ActiveJournal;

export const IDLE: Journal = { phase: 'idle' };

/** The journal that must be on the disk before the step touches anything; the same object where nothing changes. */
export function journalBefore(step: Step, journal: Journal, now: number): Journal {
  if (step.kind === 'begin') return { phase: 'started', work: step.work, spent: {} };
  if (journal.phase === 'idle') return journal;
  if (step.kind === 'swap') return { ...journal, phase: 'swapping' };
  if (step.kind === 'restart') return restarting(journal, step.process, now);
  if (step.kind === 'roll-back')
    return { ...journal, phase: 'restoring', failure: journal.failure ?? fail(step.reason) };
  if (step.kind === 'report' && step.status === 'UnCordoning') return { ...journal, phase: 'proven' };
  return journal;
}

/** The journal once the step came to its outcome. */
export function journalAfter(step: Step, journal: Journal, outcome: Outcome, now: number): Journal {
  if (journal.phase === 'idle' || step.kind === 'clean-up') return IDLE;
  if (!outcome.ok) return AFTER_FAILURE[step.kind]?.(journal, outcome.reason) ?? journal;
  if (step.kind === 'report') return entering(journal, step.status, now);
  if (step.kind === 'restart') return { ...journal, phase: isRollingBack(journal) ? 'revived' : 'restarted' };
  const phase = PHASE_AFTER[step.kind];
  return phase === undefined ? journal : { ...journal, phase };
}

/** A restarted agent gives the service its whole time again: nobody knows how long the host was off. */
export function resumed(journal: Journal, now: number): Journal {
  return journal.phase === 'idle' || journal.since === undefined ? journal : { ...journal, since: now };
}

const PHASE_AFTER: Readonly<Partial<Record<Step['kind'], Phase>>> = {
  download: 'downloaded',
  'try-out': 'ready',
  'keep-previous': 'kept',
  swap: 'swapped',
  'roll-back': 'restored',
};

/** A step that did not work: back to the previous binary where the target path may hold the new one, else the end. */
const AFTER_FAILURE: Readonly<Partial<Record<Step['kind'], (journal: ActiveJournal, reason: string) => Journal>>> = {
  download: (journal, reason) => ({ ...journal, phase: 'failed', failure: { status: 'FailedDownload', reason } }),
  'try-out': (journal, reason) => ({ ...journal, phase: 'failed', failure: fail(reason) }),
  'keep-previous': (journal, reason) => ({ ...journal, phase: 'failed', failure: fail(reason) }),
  swap: (journal, reason) => ({ ...journal, phase: 'restoring', failure: fail(reason) }),
  // While rolling back there is nothing left to go back to: only waiting may still help.
  restart: (journal, reason) =>
    isRollingBack(journal)
      ? { ...journal, phase: 'revived' }
      : { ...journal, phase: 'restoring', failure: fail(reason) },
  'roll-back': (journal, reason) => ({
    ...journal,
    phase: 'failed',
    failure: fail(`${journal.failure?.reason}; the previous binary could not be put back: ${reason}`),
  }),
};

function fail(reason: string): Failure {
  return { status: 'Failed', reason };
}

function restarting(
  { process: _ended, ...journal }: ActiveJournal,
  process: ProcessId | undefined,
  now: number,
): Journal {
  const phase = isRollingBack(journal) ? 'reviving' : 'restarting';
  return { ...journal, phase, since: now, ...(process === undefined ? {} : { process }) };
}

function entering(journal: ActiveJournal, status: string, now: number): Journal {
  const { entered, spent } = journal;
  const over = entered === undefined ? {} : { [entered.status]: Math.max(0, Math.round(now - entered.at)) };
  return { ...journal, spent: { ...spent, ...over }, entered: { status, at: now } };
}

function isRollingBack({ phase }: Pick<ActiveJournal, 'phase'>): boolean {
  return phase === 'restored' || phase === 'reviving' || phase === 'revived';
}
