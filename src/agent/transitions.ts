/** Owns the transitions of the agent's memory: what each step, and what came of it, makes of the journal. */
import type { SignalData } from '../signal/codec.ts';
import type { ActiveJournal, BundleJournal, Failure, Journal, UpdateJournal, UpdatePhase, Way } from './journal.ts';
import { IDLE, isBundle } from './journal.ts';
import type { ProcessId } from './service/host.ts';
import type { Step, StepOutcome } from './steps/step.ts';

/** The journal that must be on the disk before the step touches anything; the same object where nothing changes. */
export function journalBefore(step: Step, journal: Journal, now: number): Journal {
  if (step.kind === 'begin') return step.as;
  if (journal.phase === 'idle' || isBundle(journal)) return journal;
  if (step.kind === 'cordon-and-drain') return journal.way === 'begun' ? journal : { ...journal, way: 'begun' };
  if (step.kind === 'swap') return { ...journal, phase: 'swapping' };
  if (step.kind === 'restart') return restarting(journal, step.process, now);
  if (step.kind === 'soak') return { ...journal, phase: 'soaking', fresh: step.process, since: now };
  if (step.kind === 'give-up') return { ...journal, phase: 'failed', failure: fail(step.reason) };
  if (step.kind === 'roll-back')
    return { ...journal, phase: 'swappingBack', failure: journal.failure ?? fail(step.reason) };
  if (step.kind === 'report' && step.status === 'UnCordoning') return { ...journal, phase: 'proven' };
  return journal;
}

/** The journal once the step came to its outcome; the same object where a step that failed is to be taken again. */
export function journalAfter(step: Step, journal: Journal, outcome: StepOutcome, now: number): Journal {
  if (journal.phase === 'idle' || step.kind === 'clean-up') return IDLE;
  if (outcome.ok && step.kind === 'report') return entering(journal, step.status, now);
  if (isBundle(journal)) return step.kind === 'fetch-bundle' ? bundleAfter(journal, outcome) : journal;
  if (!outcome.ok) return AFTER_FAILURE[step.kind]?.(journal, outcome.reason, outcome.late) ?? journal;
  if (step.kind === 'restart') return { ...journal, phase: isRollingBack(journal) ? 'restartedBack' : 'restarted' };
  const way = WAY_AFTER[step.kind];
  if (way !== undefined) return { ...journal, way };
  const phase = PHASE_AFTER[step.kind];
  return phase === undefined ? journal : { ...journal, phase };
}

/** A restarted agent gives the service its whole time again: nobody knows how long the host was off. */
export function resumed(journal: Journal, now: number): Journal {
  return journal.phase === 'idle' || isBundle(journal) || journal.since === undefined
    ? journal
    : { ...journal, since: now };
}

/** The journal with the status that its signal has, whoever wrote it: its time counts from when it was seen. */
export function noticed(journal: Journal, signal: SignalData | undefined, now: number): Journal {
  const status = signal?.status?.status;
  if (journal.phase === 'idle' || status === undefined || signal?.created !== journal.work.signal.created)
    return journal;
  return entering(journal, status, now);
}

const PHASE_AFTER: Readonly<Partial<Record<Step['kind'], UpdatePhase>>> = {
  download: 'downloaded',
  'try-out': 'ready',
  'keep-previous': 'kept',
  swap: 'swapped',
  'roll-back': 'swappedBack',
};

const WAY_AFTER: Readonly<Partial<Record<Step['kind'], Way>>> = { 'cordon-and-drain': 'made', uncordon: 'given-back' };

/** A step that did not work: back to the previous binary where the target path may hold the new one, else the end. */
const AFTER_FAILURE: Readonly<
  Partial<Record<Step['kind'], (journal: UpdateJournal, reason: string, late?: 'drain') => Journal>>
> = {
  download: (journal, reason) => ({ ...journal, phase: 'failed', failure: { status: 'FailedDownload', reason } }),
  'try-out': (journal, reason) => ({ ...journal, phase: 'failed', failure: fail(reason) }),
  'cordon-and-drain': (journal, reason, late) => ({
    ...journal,
    phase: 'failed',
    failure: { ...fail(reason), ...(late === undefined ? {} : { late }) },
  }),
  'keep-previous': (journal, reason) => ({ ...journal, phase: 'failed', failure: fail(reason) }),
  swap: (journal, reason) => ({ ...journal, phase: 'swappingBack', failure: fail(reason) }),
  // While rolling back there is nothing left to go back to: only waiting may still help.
  restart: (journal, reason) =>
    isRollingBack(journal)
      ? { ...journal, phase: 'restartedBack' }
      : { ...journal, phase: 'swappingBack', failure: fail(reason) },
  'roll-back': (journal, reason) => ({
    ...journal,
    phase: 'failed',
    failure: fail(`${journal.failure?.reason}; the previous binary could not be put back: ${reason}`),
  }),
  // A failure is told even where the cordon cannot be removed now; what went well is not told before it is.
  uncordon: (journal) =>
    journal.failure === undefined || journal.way === 'stuck' ? journal : { ...journal, way: 'stuck' },
};

function bundleAfter(journal: BundleJournal, outcome: StepOutcome): BundleJournal {
  if (outcome.ok) return { ...journal, phase: 'placed' };
  return { ...journal, phase: 'missed', failure: { status: 'FailedDownload', reason: outcome.reason } };
}

function fail(reason: string): Failure {
  return { status: 'Failed', reason };
}

function restarting(
  { process: _ended, fresh: _watched, ...journal }: UpdateJournal,
  process: ProcessId | undefined,
  now: number,
): Journal {
  const phase = isRollingBack(journal) ? 'restartingBack' : 'restarting';
  return { ...journal, phase, since: now, restartedAt: now, ...(process === undefined ? {} : { process }) };
}

function entering<J extends ActiveJournal>(journal: J, status: string, now: number): J {
  const { entered, spent } = journal;
  if (entered?.status === status) return journal;
  const over = entered === undefined ? {} : { [entered.status]: Math.max(0, Math.round(now - entered.at)) };
  return { ...journal, spent: { ...spent, ...over }, entered: { status, at: now } };
}

function isRollingBack({ phase }: Pick<UpdateJournal, 'phase'>): boolean {
  return phase === 'swappedBack' || phase === 'restartingBack' || phase === 'restartedBack';
}
