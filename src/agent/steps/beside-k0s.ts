/**
 * Leaves a signal to k0s's own agent. That agent runs inside the service of k0s, and would change the same binary at
 * the same time.
 */
import { heedsSwitch } from '../../signal/own-agent.ts';
import { parseVersion } from '../../util/version.ts';
import { isStaged, type UpdatePhase } from '../journal.ts';
import type { StepInput } from '../step-input.ts';
import type { Step } from './step.ts';

/**
 * Lists for each phase the statuses that only an agent on the node writes, and that this agent writes only in a later
 * phase. If the signal has such a status, another agent wrote it.
 */
const NOT_YET_OURS: Readonly<Partial<Record<UpdatePhase, readonly string[]>>> = {
  started: ['Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning'],
  downloaded: ['Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning'],
  ready: ['Restart', 'UnCordoning'],
  kept: ['Restart', 'UnCordoning'],
  swapping: ['Restart', 'UnCordoning'],
  swapped: ['UnCordoning'],
};

/** The statuses of a signal during which the node may be cordoned. */
const CORDONED: readonly (string | undefined)[] = [
  'Cordoning',
  'ApplyingUpdate',
  'Restart',
  'UnCordoning',
];

/** The statuses in which k0s's own agent needs no leader to continue, or has already reported the end. */
const ITS_TURN: readonly (string | undefined)[] = ['ApplyingUpdate', 'Restart', 'UnCordoning'];

/**
 * Returns the step that leaves the signal to k0s's own agent, or the step that waits until it is known whether that
 * agent acts. Returns undefined if this agent may act.
 */
export function besideK0s(input: StepInput): Step | undefined {
  const { beside = 'replace', journal, host } = input;
  if (beside === 'replace') return undefined;
  if (input.ended === 'left')
    return { kind: 'stand-aside', reason: "this signal was left to k0s's own agent before" };
  // This agent must not report a failure or the end of the signal here, because the cordon that k0s's own agent set
  // would then stay.
  if (hasOtherAgent(input)) {
    // While k0s does not answer, it is not known whether it runs its own agent. If it does not, only this agent can
    // report the failure.
    if (journal.phase === 'failed' && host.running === undefined) return { kind: 'await-service' };
    const reason = `another agent reported ${input.signal?.status?.status}, so k0s's own agent works on this signal`;
    return { kind: 'stand-aside', reason };
  }
  if (journal.phase !== 'idle') return undefined;
  // Two agents must not work on one signal. So this agent reports nothing until it knows that no other agent works on
  // the signal.
  if (host.ownAgentDoubt !== undefined)
    return { kind: 'await-own-agent', reason: host.ownAgentDoubt };
  if (host.ownAgent !== true) return undefined;
  const reason = `k0s's own agent carries out the signals of this host: ${remedyFor(host.running?.version)}`;
  return beside === 'observe'
    ? { kind: 'stand-aside', reason }
    : { kind: 'report', status: 'FailedDownload', reason, refused: true };
}

/**
 * Returns the sentence that tells the user how to let Refit's agent act. Workers of old releases ignore the setting of
 * their controllers that switches k0s's own agent off.
 */
function remedyFor(version: string | undefined): string {
  return parseVersion(version) !== undefined && !heedsSwitch(version)
    ? `only k0s v1.35.1 and later can switch that agent off, and this is k0s ${version}: let k0s's own agent do this upgrade, or start the agent of Refit with --beside-k0s replace`
    : "run the controllers of k0s with --disable-components=autopilot, then restart k0s here, so that Refit's agent carries them out";
}

/**
 * Returns the step to take before a roll-back; undefined if the roll-back may begin. Without this step, k0s's own
 * agent, which starts with the new process, could report that the upgrade to the new version is complete.
 */
export function beforeRollBack(input: StepInput, reason: string): Step | undefined {
  const { beside = 'replace', signal, host, now, unreadUntil } = input;
  const mayAct =
    beside !== 'replace' && host.ownAgent !== false && ITS_TURN.includes(signal?.status?.status);
  if (!mayAct || input.isUnheard === true) return undefined;
  // The step reports RollingBack, because k0s's own agent ignores a signal with that status. If the agent cannot reach
  // the API server or its object, the roll-back waits only for a short time.
  if (unreadUntil === undefined) return { kind: 'report', status: 'RollingBack', reason };
  return now < unreadUntil ? { kind: 'await-service', until: unreadUntil } : undefined;
}

function hasOtherAgent({ journal, signal, host, isReported }: StepInput): boolean {
  const status = signal?.status?.status;
  if (status === undefined) return false;
  // Without a journal only a report of Refit shows that this agent started the work and then lost its journal.
  if (journal.phase === 'idle')
    return CORDONED.includes(status) && isReported !== true && host.ownAgent !== false;
  if (isStaged(journal)) return false;
  const { phase, begunLate = false, restartedAt, drain } = journal;
  // A failure before the first restart is not reported while another agent works on the signal. If no other agent works
  // on it, only this agent can report the failure.
  if (phase === 'failed')
    return (
      !begunLate &&
      (restartedAt ?? drain) === undefined &&
      CORDONED.includes(status) &&
      host.ownAgent !== false
    );
  if (NOT_YET_OURS[phase]?.includes(status) !== true) return false;
  return !begunLate || (status !== 'Cordoning' && status !== 'ApplyingUpdate');
}
