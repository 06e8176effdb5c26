/**
 * Decides what the agent does next. The decision is a pure function of the signal's status, the journal's phase and the
 * facts about the host.
 */
import type { SignalCommand, SignalData } from '../signal/annotations.ts';
import { sameJson } from '../util/json.ts';
import type { ActiveJournal, Journal, StagedJournal } from './journal.ts';
import * as journals from './journal.ts';
import type { ServiceFacts } from './service/host.ts';
import type { StepInput } from './step-input.ts';
import { beforeRollBack, besideK0s } from './steps/beside-k0s.ts';
import type { Step } from './steps/step.ts';
import { answerEnded, takeUp } from './steps/take-up.ts';
import { ADVANCE, windDown } from './steps/update-steps.ts';

/** Returns the next step. It depends on `input` alone. */
export function nextStep(input: StepInput): Step {
  const { signal, journal } = input;
  if (journal.phase === 'idle') {
    if (!isOpen(signal) || input.ended === 'left') return { kind: 'nothing' };
    const beside = besideK0s(input);
    if (beside) return beside;
    return input.ended === undefined
      ? takeUp({ ...input, signal })
      : answerEnded({ ...input, signal });
  }
  const isCurrent = isCurrentSignal(signal, journal);
  if (journals.isStaged(journal))
    return isCurrent ? nextStagedStep(journal, signal?.status?.status) : { kind: 'clean-up' };
  if (!isCurrent) return windDown({ ...input, journal });
  const step = besideK0s(input) ?? ADVANCE[journal.phase]({ ...input, journal });
  // The agent removes its own cordon before it leaves the signal to another agent.
  if (step.kind === 'stand-aside' && journals.mayBeCordoned(journal)) return { kind: 'uncordon' };
  if (step.kind === 'roll-back') return beforeRollBack(input, step.reason) ?? step;
  // In the phase `swapping` the new file may be in place already, so the veto comes too late.
  const isRisky = step.kind === 'download' || (step.kind === 'swap' && journal.phase === 'kept');
  return isRisky && input.veto !== undefined
    ? { kind: 'give-up', reason: input.veto, refused: true }
    : step;
}

/**
 * Returns true if there is nothing to do, whatever the state of the host is. In that case the agent gathers no facts
 * about the host.
 */
export function isAtRest(signal: SignalData | undefined, journal: Journal): boolean {
  return journal.phase === 'idle' && !isOpen(signal);
}

/**
 * Returns true while the object carries the signal to which the journal belongs, and the status of the signal is not
 * final.
 */
export function isCurrentSignal(signal: SignalData | undefined, { work }: ActiveJournal): boolean {
  return isOpen(signal) && sameJson(work.signal, journals.signalKeyOf(signal));
}

/**
 * Returns true if the next decision depends on the service. An airgap bundle does not affect the service. While a
 * leader drains the node, which may take hours, the decision does not depend on the service.
 */
export function asksForService(signal: SignalData | undefined, journal: Journal): boolean {
  if (journal.phase === 'idle') return signal?.command.kind === 'k0supdate';
  return !journals.isStaged(journal) && !asksWhoCordons(signal, journal);
}

/** Returns true if the next decision depends on who cordons, drains and uncordons the node. */
export function asksWhoCordons(signal: SignalData | undefined, journal: Journal): boolean {
  if (journal.phase === 'idle' || !isCurrentSignal(signal, journal)) return false;
  const status = signal?.status?.status;
  if (journal.phase === 'ready') return status === 'Cordoning' && journal.drain !== 'done';
  return journal.phase === 'proven' && status === 'UnCordoning';
}

/**
 * Returns true if the next decision depends on whether Refit cordoned the node: a node that already runs the version
 * must not keep such a cordon.
 */
export function asksForCordon(
  signal: SignalData | undefined,
  journal: Journal,
  { running }: ServiceFacts,
): boolean {
  const { kind, version, forceupdate } = signal?.command ?? {};
  return (
    journal.phase === 'idle' &&
    kind === 'k0supdate' &&
    forceupdate !== true &&
    running?.version === version
  );
}

/** Returns the next step of work that first stages files: an airgap bundle, or the upgrade of a host by a procedure. */
function nextStagedStep(journal: StagedJournal, status: string | undefined): Step {
  const { phase, failure, work } = journal;
  const isBundle = work.signal.command.kind === 'airgapupdate';
  if (phase === 'missed')
    return {
      kind: 'report',
      ...(failure ?? { status: 'FailedDownload', reason: 'the files were not staged' }),
    };
  if (phase === 'wanted' && status === undefined) return { kind: 'report', status: 'Downloading' };
  return isBundle ? nextBundleStep(phase) : nextProcedureStep(phase, status);
}

/** The service imports a placed bundle by itself, so nothing is restarted. */
function nextBundleStep(phase: StagedJournal['phase']): Step {
  return phase === 'wanted' ? { kind: 'fetch-bundle' } : { kind: 'report', status: 'Completed' };
}

/** Once everything is staged, the leader drains the node. The procedure changes the host only after that drain. */
function nextProcedureStep(phase: StagedJournal['phase'], status: string | undefined): Step {
  if (phase === 'wanted') return { kind: 'stage-upgrade' };
  if (phase === 'upgraded')
    return status === 'UnCordoning'
      ? { kind: 'await-leader' }
      : { kind: 'report', status: 'UnCordoning' };
  if (status === undefined || status === 'Downloading')
    return { kind: 'report', status: 'Cordoning' };
  return status === 'ApplyingUpdate' ? { kind: 'upgrade-host' } : { kind: 'await-leader' };
}

/**
 * The statuses of a signal on which the agent works, by the kind of its command. All other statuses are final or unknown, and the original
 * agents ignore them, too.
 */
const OPEN: Readonly<Record<SignalCommand['kind'], readonly (string | undefined)[]>> = {
  k0supdate: [
    undefined,
    'Downloading',
    'Cordoning',
    'ApplyingUpdate',
    'Restart',
    'UnCordoning',
    'RollingBack',
  ],
  airgapupdate: [undefined, 'Downloading'],
  kubeadmupdate: [undefined, 'Downloading', 'Cordoning', 'ApplyingUpdate', 'UnCordoning'],
};

function isOpen(signal: SignalData | undefined): signal is SignalData {
  return signal !== undefined && OPEN[signal.command.kind].includes(signal.status?.status);
}
