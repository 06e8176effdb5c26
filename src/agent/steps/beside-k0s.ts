/** Leaves a signal to k0s's own agent, which lives in the service and would race for the same binary. */
import { heedsSwitch } from '../../signal/own-agent.ts';
import { parseVersion } from '../../util/version.ts';
import { isBundle, type UpdatePhase } from '../journal.ts';
import type { StepInput } from '../step-input.ts';
import type { Step } from './step.ts';

/** Statuses that only a node's agent writes, and that this one has not written yet in that phase. */
const NOT_YET_OURS: Readonly<Partial<Record<UpdatePhase, readonly string[]>>> = {
  started: ['Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning'],
  downloaded: ['Cordoning', 'ApplyingUpdate', 'Restart', 'UnCordoning'],
  ready: ['Restart', 'UnCordoning'],
  kept: ['Restart', 'UnCordoning'],
  swapping: ['Restart', 'UnCordoning'],
  swapped: ['UnCordoning'],
};

/** Statuses of a signal whose node may be cordoned. */
const CORDONED: readonly (string | undefined)[] = [
  'Cordoning',
  'ApplyingUpdate',
  'Restart',
  'UnCordoning',
];

/** Statuses at which it goes on by itself, or has told the end. */
const ITS_TURN: readonly (string | undefined)[] = ['ApplyingUpdate', 'Restart', 'UnCordoning'];

/** Undefined when nothing speaks for another agent. */
export function besideK0s(input: StepInput): Step | undefined {
  const { beside = 'replace', journal, host } = input;
  if (beside === 'replace') return undefined;
  if (input.ended === 'left')
    return { kind: 'stand-aside', reason: "this signal was left to k0s's own agent before" };
  // A signal that is failed or ended under k0s's own agent would keep that one's cordon.
  if (hasOtherAgent(input)) {
    // While k0s does not answer, nobody knows whether it runs its own agent. If it does not, only this one can report the failure.
    if (journal.phase === 'failed' && host.running === undefined) return { kind: 'await-service' };
    const reason = `another agent reported ${input.signal?.status?.status}: k0s's own one works on this signal`;
    return { kind: 'stand-aside', reason };
  }
  if (journal.phase !== 'idle') return undefined;
  // Two agents on one signal would race: nothing is reported before it is known that this one is alone.
  if (host.ownAgentDoubt !== undefined)
    return { kind: 'await-own-agent', reason: host.ownAgentDoubt };
  if (host.ownAgent !== true) return undefined;
  const reason = `k0s's own agent carries out the signals of this host: ${remedyFor(host.running?.version)}`;
  return beside === 'observe'
    ? { kind: 'stand-aside', reason }
    : { kind: 'report', status: 'FailedDownload', reason, refused: true };
}

/** Workers of old releases heed no switch. */
function remedyFor(version: string | undefined): string {
  return parseVersion(version) !== undefined && !heedsSwitch(version)
    ? `k0s ${version} cannot switch it off, as v1.35.1 and later can: let it do this upgrade, or start the agent of Refit with --beside-k0s replace`
    : "run the controllers of k0s with --disable-components=autopilot, then restart k0s here, to let Refit's do it";
}

/** Undefined when the roll-back may begin. Else k0s's own agent, in the new process, could report that as the end. */
export function beforeRollBack(input: StepInput, reason: string): Step | undefined {
  const { beside = 'replace', signal, host, now, unreadUntil } = input;
  const mayAct =
    beside !== 'replace' && host.ownAgent !== false && ITS_TURN.includes(signal?.status?.status);
  if (!mayAct || input.isUnheard === true) return undefined;
  // It leaves a signal with this status alone. No roll-back waits long for an API server.
  if (unreadUntil === undefined) return { kind: 'report', status: 'RollingBack', reason };
  return now < unreadUntil ? { kind: 'await-service', until: unreadUntil } : undefined;
}

function hasOtherAgent({ journal, signal, host, isReported }: StepInput): boolean {
  const status = signal?.status?.status;
  if (status === undefined) return false;
  // Without a journal, only our own report tells whether this agent began the work and lost its journal.
  if (journal.phase === 'idle')
    return CORDONED.includes(status) && isReported !== true && host.ownAgent !== false;
  if (isBundle(journal)) return false;
  const { phase, begunLate = false, restartedAt, drain } = journal;
  // A failure of ours before any restart is not reported under the other agent's work; without one, nobody else reports.
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
