/** Computes the journal that is saved before each step, and the journal after the outcome of the step. */
import { StatusError, TransportError } from '../kube/status-error.ts';
import type { SignalData } from '../signal/annotations.ts';
import { defined } from '../util/json.ts';
import type { ActiveJournal, Failure, Journal, StagedJournal, UpdateJournal } from './journal.ts';
import * as journals from './journal.ts';
import type { ProcessId } from './service/host.ts';
import type { Step, StepOutcome } from './steps/step.ts';

/**
 * Returns the journal to save before the step changes anything. Returns the same object if the journal does not change.
 */
export function journalBefore(step: Step, journal: Journal, now: number): Journal {
  if (step.kind === 'begin') return step.as;
  // The journal is saved together with the status, so that the step can be continued without an API server.
  if (step.kind === 'upgrade-host') return { ...journal };
  if (journal.phase === 'idle' || journals.isStaged(journal)) return journal;
  if (step.kind === 'cordon-and-drain')
    return journal.drain === 'started' ? journal : { ...journal, drain: 'started' };
  if (step.kind === 'swap') return { ...journal, phase: 'swapping' };
  if (step.kind === 'restart') {
    const phase = isRollingBack(journal) ? 'restartingBack' : 'restarting';
    return {
      ...journal,
      phase,
      since: now,
      restartedAt: now,
      process: step.process,
      fresh: undefined,
    };
  }
  if (step.kind === 'soak')
    return { ...journal, phase: 'soaking', fresh: step.process, since: now, failure: undefined };
  if (step.kind === 'give-up')
    return failed(journal, {
      ...fail(step.reason),
      ...(step.refused && { refused: step.refused }),
    });
  if (step.kind === 'roll-back')
    return { ...journal, phase: 'swappingBack', failure: journal.failure ?? fail(step.reason) };
  if (step.kind === 'report' && step.status === 'UnCordoning')
    return { ...journal, phase: 'proven', ...upMsOf(journal, now) };
  return journal;
}

/** A journal that is proven already keeps its value, because the report may be repeated. */
function upMsOf({ phase, since }: UpdateJournal, now: number): Pick<UpdateJournal, 'upMs'> {
  if (phase !== 'soaking' || since === undefined) return {};
  return { upMs: Math.max(0, Math.round(now - since)) };
}

/** Returns the journal after the step's outcome. Returns the same object if a failed step must be repeated. */
export function journalAfter(
  step: Step,
  journal: Journal,
  outcome: StepOutcome,
  now: number,
): Journal {
  if (journal.phase === 'idle' || step.kind === 'clean-up' || step.kind === 'stand-aside')
    return journals.IDLE;
  if (outcome.ok && step.kind === 'report') return entering(journal, step.status, now);
  const { removed, removedBundle } = outcome;
  if (removed === undefined && removedBundle === undefined) return after(step, journal, outcome);
  return after(step, { ...journal, ...defined({ removed, removedBundle }) }, outcome);
}

function after(step: Step, journal: ActiveJournal, outcome: StepOutcome): Journal {
  return journals.isStaged(journal)
    ? stagedAfter(step, journal, outcome)
    : updateAfter(step, journal, outcome);
}

function updateAfter(step: Step, journal: UpdateJournal, outcome: StepOutcome): Journal {
  if (!outcome.ok)
    return AFTER_FAILURE[step.kind]?.(journal, outcome.reason, outcome.late) ?? journal;
  if (step.kind === 'restart')
    return { ...journal, phase: isRollingBack(journal) ? 'restartedBack' : 'restarted' };
  if (step.kind === 'snapshot-etcd')
    return outcome.snapshot === undefined ? journal : { ...journal, snapshot: outcome.snapshot };
  const change = AFTER_SUCCESS[step.kind];
  return change === undefined ? journal : { ...journal, ...change };
}

/**
 * Returns the journal after a restart of the agent. The full time limit of the service starts again, because the host
 * may have been off.
 */
export function resumed(journal: Journal, now: number): Journal {
  if (journal.phase === 'idle' || journals.isStaged(journal) || journal.since === undefined)
    return journal;
  const { restartedAt = now, ...rest } = journal;
  // A `restartedAt` in the future is removed. The clock was set back after the restart, so the time has no meaning.
  return { ...rest, since: now, ...(restartedAt < now && { restartedAt }) };
}

/** Returns the journal after a reboot. The watched process has ended, so the new version must answer again. */
export function afterReboot(journal: Journal, boot: string): Journal {
  const hasEnded = (process: ProcessId | undefined): boolean =>
    process?.started.startsWith(`${boot}/`) !== true;
  if (journal.phase === 'idle' || journals.isStaged(journal) || !hasEnded(journal.work.original))
    return journal;
  const { phase, process, fresh, work } = journal;
  // After a reboot, another process may have the PID of the old supervisor, so 0 replaces that PID. PID 1 stays,
  // because it is the same program in each boot.
  const original = { ...work.original, parent: work.original.parent === 1 ? 1 : 0 };
  const known = {
    ...journal,
    process: hasEnded(process) ? undefined : process,
    work: { ...work, original },
  };
  return phase === 'soaking' && hasEnded(fresh)
    ? { ...known, phase: 'restarted', fresh: undefined }
    : known;
}

/**
 * Returns the journal with the signal's current status, which the agent or the leader wrote. The time limit of that
 * status starts now.
 */
export function withObservedStatus(
  journal: Journal,
  signal: SignalData | undefined,
  now: number,
): Journal {
  const status = signal?.status?.status;
  if (
    journal.phase === 'idle' ||
    status === undefined ||
    signal?.created !== journal.work.signal.created
  )
    return journal;
  return entering(journal, status, now);
}

const AFTER_SUCCESS: Readonly<Partial<Record<Step['kind'], Partial<UpdateJournal>>>> = {
  download: { phase: 'downloaded' },
  'trial-run': { phase: 'ready' },
  'cordon-and-drain': { drain: 'done' },
  'keep-previous': { phase: 'kept' },
  swap: { phase: 'swapped' },
  'roll-back': { phase: 'swappedBack' },
  uncordon: { drain: 'undone' },
};

type AfterFailure = (journal: UpdateJournal, reason: string, late?: 'drain') => Journal;

/**
 * Defines the effect of each failed step on the journal. The result is a roll-back if the target path may contain the
 * new binary, and otherwise a failure.
 */
const AFTER_FAILURE: Readonly<Partial<Record<Step['kind'], AfterFailure>>> = {
  download: (journal, reason) => failed(journal, { status: 'FailedDownload', reason }),
  'trial-run': (journal, reason) => failed(journal, fail(reason)),
  'snapshot-etcd': (journal, reason) => failed(journal, fail(reason)),
  'cordon-and-drain': (journal, reason, late) =>
    failed(journal, { ...fail(reason), ...(late && { late }) }),
  'keep-previous': (journal, reason) => failed(journal, fail(reason)),
  swap: (journal, reason) => ({ ...journal, phase: 'swappingBack', failure: fail(reason) }),
  // If the failed restart was part of a roll-back, the agent cannot return to any other version. So it only waits.
  restart: (journal, reason) =>
    isRollingBack(journal)
      ? { ...journal, phase: 'restartedBack' }
      : { ...journal, phase: 'swappingBack', failure: fail(reason) },
  'roll-back': (journal, reason) =>
    failed(journal, {
      ...fail(`${journal.failure?.reason}; the roll-back failed: ${reason}`),
      rolledBack: false,
    }),
  // If the uncordon after a failed upgrade fails, the agent still reports the upgrade, and the node stays cordoned. The
  // agent reports a successful upgrade only after the uncordon succeeds.
  uncordon: (journal) =>
    journal.failure === undefined || journal.drain === 'stuck'
      ? journal
      : { ...journal, drain: 'stuck' },
};

function stagedAfter({ kind }: Step, journal: StagedJournal, outcome: StepOutcome): StagedJournal {
  const isFetch = kind === 'fetch-bundle' || kind === 'stage-upgrade';
  if (!isFetch && kind !== 'upgrade-host') return journal;
  if (outcome.ok) return { ...journal, phase: isFetch ? 'placed' : 'upgraded' };
  const { error, reason } = outcome;
  if (isFetch && isPassing(error)) return journal;
  return {
    ...journal,
    phase: 'missed',
    failure: { status: isFetch ? 'FailedDownload' : 'Failed', reason },
  };
}

/**
 * Returns true if the request may succeed later: the API server is not reachable, is overloaded, or does not know a
 * renewed certificate yet.
 */
function isPassing(error: unknown): boolean {
  if (error instanceof TransportError) return true;
  if (!(error instanceof StatusError)) return false;
  return error.code >= 500 || error.code === 429 || error.code === 401;
}

function fail(reason: string): Failure {
  return { status: 'Failed', reason };
}

function failed(journal: UpdateJournal, failure: Failure): UpdateJournal {
  return { ...journal, phase: 'failed', failure };
}

function entering<J extends ActiveJournal>(journal: J, status: string, now: number): J {
  const { entered, spent } = journal;
  if (entered?.status === status) return journal;
  const over =
    entered === undefined ? {} : { [entered.status]: Math.max(0, Math.round(now - entered.at)) };
  return { ...journal, spent: { ...spent, ...over }, entered: { status, at: now } };
}

function isRollingBack({ phase }: Pick<UpdateJournal, 'phase'>): boolean {
  return phase === 'swappedBack' || phase === 'restartingBack' || phase === 'restartedBack';
}
