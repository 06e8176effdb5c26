/** Owns what the agent does next: a pure table over the signal's status, the journal's phase and the facts of the host. */
import type { SignalData } from '../signal/codec.ts';
import { sameJson } from '../util/json.ts';
import type { ActiveJournal, Journal } from './journal.ts';
import { isBundle } from './journal.ts';
import type { HostFacts } from './service/host.ts';
import type { StepInput } from './step-input.ts';
import { nextBundleStep } from './steps/bundle-steps.ts';
import type { Step } from './steps/step.ts';
import { takeUp } from './steps/take-up.ts';
import { nextUpdateStep, windDown } from './steps/update-steps.ts';

export function nextStep(input: StepInput): Step {
  const { signal, journal } = input;
  if (journal.phase === 'idle') return isOpen(signal) ? takeUp({ ...input, signal }) : { kind: 'nothing' };
  const stands = isStanding(signal, journal);
  if (isBundle(journal)) return stands ? nextBundleStep(journal, signal?.status?.status) : { kind: 'clean-up' };
  return stands ? nextUpdateStep({ ...input, journal }) : windDown({ ...input, journal });
}

/** True where no fact about the host can change the decision: the agent need not ask for any. */
export function isAtRest(signal: SignalData | undefined, journal: Journal): boolean {
  return journal.phase === 'idle' && !isOpen(signal);
}

/** True where the object still carries the signal that the journal's work is for, and nobody has ended it. */
export function isStanding(signal: SignalData | undefined, { work }: ActiveJournal): boolean {
  if (!isOpen(signal)) return false;
  const { planId, created, command } = signal;
  return sameJson(work.signal, { planId, created, command });
}

/** True where the service matters; an airgap bundle is none of its business. */
export function asksForService(signal: SignalData | undefined, journal: Journal): boolean {
  return journal.phase === 'idle' ? signal?.command.kind === 'k0supdate' : !isBundle(journal);
}

/** True where it matters who cordons. */
export function asksWhoCordons(signal: SignalData | undefined, journal: Journal): boolean {
  if (journal.phase === 'idle' || !isStanding(signal, journal)) return false;
  const status = signal?.status?.status;
  if (journal.phase === 'ready') return status === 'Cordoning' && journal.way !== 'made';
  return journal.phase === 'proven' && status === 'UnCordoning';
}

/** True where it matters whether the node bears a cordon of ours: an update that is none must not leave one behind. */
export function waitsForCordon(signal: SignalData | undefined, journal: Journal, { running }: HostFacts): boolean {
  const { kind, version, forceupdate } = signal?.command ?? {};
  return journal.phase === 'idle' && kind === 'k0supdate' && forceupdate !== true && running?.version === version;
}

/** A status that is none of these is nobody's business: original agents leave it alone too. */
const OPEN = {
  k0supdate: [undefined, 'Downloading', 'Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning'],
  airgapupdate: [undefined, 'Downloading'],
} as const;

function isOpen(signal: SignalData | undefined): signal is SignalData {
  if (signal === undefined) return false;
  const open: readonly (string | undefined)[] = OPEN[signal.command.kind];
  return open.includes(signal.status?.status);
}
