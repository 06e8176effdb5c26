/** Owns what the agent does next: a pure table over the signal's status, the journal's phase and the facts of the host. */
import type { SignalData } from '../signal/codec.ts';
import { sameJson } from '../util/json.ts';
import type { HostFacts, RunningService } from './host.ts';
import { isSameProcess } from './host.ts';
import type { ActiveJournal, Journal, Phase } from './journal.ts';
import type { Step } from './step.ts';

export interface StepInput {
  /** What the object carries; undefined where it carries no signal, or does not exist. */
  readonly signal: SignalData | undefined;
  readonly journal: Journal;
  readonly host: HostFacts;
  /** Steady milliseconds: they start at any value and never jump. */
  readonly now: number;
  /** Milliseconds that a restarted service has to show its version. */
  readonly restartTimeoutMs: number;
}

/**
 * Cordoning and UnCordoning are passed through: this agent does not cordon or drain, so that it needs no rights on pods
 * and keeps its place in the sequence that original leaders expect.
 */
export function nextStep(input: StepInput): Step {
  const { signal, journal } = input;
  if (journal.phase === 'idle') return isOpen(signal) ? takeUp({ ...input, signal }) : NOTHING;
  const work = { ...input, journal };
  return isOpen(signal) && isFor(journal, signal) ? ADVANCE[journal.phase](work) : windDown(work);
}

/** True where no fact about the host can change the decision: the agent need not ask for any. */
export function isAtRest(signal: SignalData | undefined, journal: Journal): boolean {
  return journal.phase === 'idle' && !isOpen(signal);
}

/** True where the journal's work is for this signal. */
export function isFor({ work }: ActiveJournal, { planId, created, command }: SignalData): boolean {
  return sameJson(work.signal, { planId, created, command });
}

interface Fresh extends StepInput {
  readonly signal: SignalData;
}
interface Working extends StepInput {
  readonly journal: ActiveJournal;
}

const NOTHING: Step = { kind: 'nothing' };
/** A status that is none of these is nobody's business: original agents leave it alone too. */
const OPEN = [undefined, 'Downloading', 'Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning'];
const SHA256 = /^[0-9a-f]{64}$/i;

function isOpen(signal: SignalData | undefined): signal is SignalData {
  return signal !== undefined && OPEN.includes(signal.status?.status);
}

/** A signal without work in the journal: a new one, or one whose journal was lost. */
function takeUp(input: Fresh): Step {
  const status = input.signal.status?.status;
  if (status === 'UnCordoning') return report('Completed');
  return status === 'ApplyingUpdate' || status === 'Restart' ? takeUpUnknown(input) : takeUpNew(input);
}

function takeUpNew({ signal, host }: Fresh): Step {
  const { planId, created, command } = signal;
  const refusal = refusalOf(signal);
  if (refusal !== undefined) return { kind: 'report', status: 'FailedDownload', reason: refusal, ...fromOf(host) };
  const { running, binary } = host;
  if (running === undefined) return { kind: 'await-service' };
  if (running.version === command.version && command.forceupdate !== true) {
    // Past Cordoning somebody may have cordoned the node for this signal, and undoes it only at UnCordoning.
    const status = signal.status?.status === 'Cordoning' ? 'UnCordoning' : 'Completed';
    return { kind: 'report', status, from: running.version };
  }
  if (binary === undefined) {
    const reason = `cannot tell which file PID ${running.process.pid} runs: pass --binary`;
    return { kind: 'report', status: 'Failed', reason, from: running.version };
  }
  const work = { signal: { planId, created, command }, binary, from: running.version, original: running.process };
  return { kind: 'begin', work };
}

/** The target path may hold either binary, and nothing says whether the previous one was kept: hands off. */
function takeUpUnknown({ signal, host }: Fresh): Step {
  if (host.running === undefined) return { kind: 'await-service' };
  const { version, forceupdate } = signal.command;
  if (host.running.version === version && forceupdate !== true) return report('UnCordoning');
  const reason = `the update stood at ${signal.status?.status}, but the agent's journal of it is gone`;
  return { kind: 'report', status: 'Failed', reason };
}

function refusalOf({ command }: SignalData): string | undefined {
  if (command.kind !== 'k0supdate') return `this agent cannot carry out ${command.kind}, only k0supdate`;
  if (command.sha256 === undefined || SHA256.test(command.sha256)) return undefined;
  return `sha256 "${command.sha256}" is not 64 hexadecimal digits`;
}

/** One rule for each phase, for work whose signal still stands. */
const ADVANCE: Readonly<Record<Phase, (input: Working) => Step>> = {
  started: ({ signal }) => (signal?.status === undefined ? report('Downloading') : { kind: 'download' }),
  downloaded: () => ({ kind: 'try-out' }),
  ready(input) {
    const status = input.signal?.status?.status;
    if (status === undefined || status === 'Downloading') return report('Cordoning');
    return status === 'Cordoning' ? report('ApplyingUpdate') : keepPrevious(input);
  },
  kept: () => ({ kind: 'swap' }),
  swapping: () => ({ kind: 'swap' }),
  swapped(input) {
    if (input.signal?.status?.status !== 'Restart') return report('Restart');
    return runsNew(input) ? report('UnCordoning') : restart(input);
  },
  restarting: (input) => (isStillThere(input) ? restart(input) : awaitNew(input)),
  restarted: awaitNew,
  proven: ({ signal }) => report(signal?.status?.status === 'UnCordoning' ? 'Completed' : 'UnCordoning'),
  restoring: ({ journal }) => rollBack(journal.failure?.reason ?? 'the update failed'),
  restored: (input) => (runsOld(input) ? reportFailure(input.journal, true) : restart(input)),
  reviving: (input) => (isStillThere(input) ? restart(input) : awaitOld(input)),
  revived: awaitOld,
  failed: ({ journal }) => reportFailure(journal, false),
};

/**
 * Work whose signal is over, gone or another one. What already touched the service is brought to a proven end first, so
 * that the previous path never names a binary that nobody saw running.
 */
function windDown(input: Working): Step {
  const { phase } = input.journal;
  if (phase === 'swapping' || phase === 'swapped') return rollBack('the signal was taken back');
  const step = ADVANCE[phase](input);
  const touchesService = ['await-service', 'restart', 'kill', 'roll-back'].includes(step.kind);
  return touchesService ? step : { kind: 'clean-up' };
}

/** Only a binary that runs is worth going back to: anything else must not take the place of one that once did. */
function keepPrevious({ host: { running, binary } }: Working): Step {
  if (running === undefined) return { kind: 'await-service' };
  if (running.current) return { kind: 'keep-previous' };
  const reason = `${binary} is not the file that PID ${running.process.pid} runs, so there would be no way back: restart the service, or put its file back`;
  return { kind: 'report', status: 'Failed', reason };
}

function awaitNew(input: Working): Step {
  if (runsNew(input)) return report('UnCordoning');
  const { journal, host, restartTimeoutMs } = input;
  const { version } = journal.work.signal.command;
  if (host.running?.current === true && host.running.version !== version && isOther(host.running, journal)) {
    return rollBack(`after the restart the service runs ${host.running.version} instead of ${version}`);
  }
  const until = deadline(input);
  if (input.now < until) return { kind: 'await-service', until };
  return rollBack(`the service did not show ${version} within ${restartTimeoutMs / 1000} s of its restart`);
}

function awaitOld(input: Working): Step {
  if (runsOld(input)) return reportFailure(input.journal, true);
  const { journal, now, restartTimeoutMs } = input;
  const until = deadline(input);
  const patience = until - restartTimeoutMs / 2;
  if (now < patience) return { kind: 'await-service', until: patience };
  if (now >= until) return reportFailure(journal, false);
  const process = journal.process;
  if (process !== undefined && isStillThere(input)) return { kind: 'kill', process };
  return { kind: 'await-service', until };
}

/** Seen from outside: another process than before, with the wanted version; a forced update also by its very file. */
function runsNew({ journal, host }: Working): boolean {
  const { version, forceupdate } = journal.work.signal.command;
  const { running } = host;
  if (running?.version !== version || !isOther(running, journal)) return false;
  return running.current || forceupdate !== true;
}

/** A process that was told to end and has not yet answers as ever, but will be gone: it proves nothing. */
function runsOld({ journal, host: { running } }: Working): boolean {
  if (running === undefined || isSameProcess(running.process, journal.process)) return false;
  return running.current && running.version === journal.work.from;
}

function isOther({ process }: RunningService, { process: ended, work }: ActiveJournal): boolean {
  return !isSameProcess(process, ended) && !isSameProcess(process, work.original);
}

function isStillThere({ journal, host }: Working): boolean {
  return isSameProcess(host.service, journal.process);
}

function deadline({ journal, now, restartTimeoutMs }: Working): number {
  return (journal.since ?? now) + restartTimeoutMs;
}

function restart({ host }: Working): Step {
  return host.service === undefined ? { kind: 'restart' } : { kind: 'restart', process: host.service };
}

function rollBack(reason: string): Step {
  return { kind: 'roll-back', reason };
}

function report(
  status: 'Downloading' | 'Cordoning' | 'ApplyingUpdate' | 'Restart' | 'UnCordoning' | 'Completed',
): Step {
  return { kind: 'report', status };
}

function reportFailure({ failure }: ActiveJournal, rolledBack: boolean): Step {
  const { status, reason } = failure ?? { status: 'Failed', reason: 'the update failed' };
  return rolledBack ? { kind: 'report', status, reason, rolledBack } : { kind: 'report', status, reason };
}

function fromOf({ running }: HostFacts): { from?: string } {
  return running === undefined ? {} : { from: running.version };
}
