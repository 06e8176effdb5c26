/**
 * Decides the first step for a signal that is not in the journal: either the signal is new, or the agent lost its
 * journal.
 */
import {
  type StagedJournal,
  type StagedWork,
  signalKeyOf,
  type UpdateJournal,
  type Work,
} from '../journal.ts';
import type { RunningService, ServiceFacts } from '../service/host.ts';
import type { NewSignalInput } from '../step-input.ts';
import type { Step } from './step.ts';

/** Returns the first step for the signal: refuse it, wait, or begin to work. */
export function takeUp(input: NewSignalInput): Step {
  const refusal = refusalOf(input);
  if (refusal !== undefined)
    return {
      kind: 'report',
      status: 'FailedDownload',
      reason: refusal,
      refused: true,
      ...fromOf(input.host),
    };
  const { signal, early } = input;
  if (early !== undefined) return { kind: 'await-clock', reason: early };
  if (signal.command.kind !== 'k0supdate') return { kind: 'begin', as: firstOf(input) };
  const { running } = input.host;
  if (running === undefined) return { kind: 'await-service' };
  return isLate(signal.status?.status) ? takeUpUnknown(input, running) : takeUpNew(input, running);
}

/**
 * Returns the step for a signal that has already ended on this host, such as an old copy from a restored etcd. The
 * agent does not carry out the signal again, but it reports a result, because the leader waits for a result.
 */
export function answerEnded(input: NewSignalInput): Step {
  const { signal, host, ended } = input;
  const { running, distrust } = host;
  const { kind, version } = signal.command;
  if (kind === 'airgapupdate' && ended === 'Completed') return { kind: 'report', status: ended };
  if (kind === 'k0supdate' && running === undefined && distrust === undefined)
    return { kind: 'await-service' };
  if (ended === 'Completed' && running?.version === version && running.current) {
    // If the restored object has the status UnCordoning, it may still contain the cordon that the node had at the time
    // of the backup.
    const isThere = signal.status?.status === 'UnCordoning';
    return isThere ? takeUp(input) : { kind: 'report', status: 'UnCordoning', ...fromOf(host) };
  }
  const now = running === undefined ? '' : `, and the host runs ${running.version}`;
  const reason = `this signal has already ended as ${ended}${now}. The agent does not carry it out again; to try again, run refit retry`;
  if (running?.current !== true)
    return { kind: 'report', status: 'Failed', reason, ...fromOf(host) };
  return begin(input, running, {
    phase: 'failed',
    failure: { status: 'Failed', reason },
    drain: 'started',
  });
}

/**
 * Returns the first journal of the work. If the signal has a status later than Downloading, a leader may already have
 * drained the node. The journal that says what was staged is then lost, so the work is recorded as failed and does not
 * start.
 */
function firstOf(input: NewSignalInput): StagedJournal {
  const { status } = input.signal.status ?? {};
  const common = { work: workOf(input), spent: {} };
  if (status === undefined || status === 'Downloading') return { ...common, phase: 'wanted' };
  const reason = `the update was at ${status}, but the agent's journal of it is gone: check the host, then retry`;
  return { ...common, phase: 'missed', failure: { status: 'Failed', reason } };
}

function isLate(status: string | undefined): boolean {
  return ['ApplyingUpdate', 'Restart', 'UnCordoning', 'RollingBack'].includes(status ?? '');
}

function refusalOf({
  signal: { command, status },
  accepts,
  veto,
  host,
}: NewSignalInput): string | undefined {
  if (!accepts.includes(command.kind))
    return `this agent cannot carry out ${command.kind} here, only ${accepts.join(' and ')}`;
  // The veto applies only before the download, because an upgrade with a later status downloads nothing.
  if (command.sha256 === undefined || /^[0-9a-fA-F]{64}$/.test(command.sha256))
    return isLate(status?.status) ? undefined : (veto ?? host.distrust);
  return `sha256 "${command.sha256}" is not 64 hexadecimal digits`;
}

function takeUpNew(input: NewSignalInput, running: RunningService): Step {
  const { signal, node } = input;
  // The process must also run the file that is at the path now. If its file was replaced, the process runs the wanted
  // version only until its next start.
  const isThere = running.version === signal.command.version && running.current;
  if (isThere && signal.command.forceupdate !== true) {
    // The leader may have cordoned the node at Cordoning, and uncordons it only at UnCordoning. The same applies if the
    // agent cordoned the node for an earlier signal and did not remove that cordon.
    const isCordoned = signal.status?.status === 'Cordoning' || node.isCordoned === true;
    return {
      kind: 'report',
      status: isCordoned ? 'UnCordoning' : 'Completed',
      from: running.version,
    };
  }
  // A payload that was downloaded before is trusted here, because the swap compares its hash again.
  const begunLate = signal.status?.status === 'Cordoning' && { begunLate: true as const };
  return begin(input, running, {
    phase: input.isStaged === true ? 'ready' : 'started',
    ...begunLate,
  });
}

/**
 * Returns the step for an upgrade whose journal was lost. The target path may contain either binary, and the previous
 * one may be missing, so the agent changes nothing.
 */
function takeUpUnknown(input: NewSignalInput, running: RunningService): Step {
  const { signal } = input;
  const { version, forceupdate } = signal.command;
  const status = signal.status?.status;
  // The agent reports UnCordoning only after the new process has answered. Before that status, nothing proves that a
  // forced update succeeded.
  const isProof =
    forceupdate === true
      ? status === 'UnCordoning'
      : running.version === version && running.current;
  if (isProof) return begin(input, running, { phase: 'proven' });
  const reason = `the update was at ${status}, but the agent's journal of it is gone: check on the host which binary is in place, then retry`;
  const failure = { status: 'Failed', reason, rolledBack: false } as const;
  return begin(input, running, { phase: 'failed', failure, drain: 'started' });
}

function begin(
  input: NewSignalInput,
  running: RunningService,
  first: Omit<UpdateJournal, 'work' | 'spent'>,
): Step {
  const { binary } = input.host;
  if (binary === undefined) {
    const reason = `cannot find the file that PID ${running.process.pid} runs: start the agent with --binary`;
    return { kind: 'report', status: 'Failed', reason, from: running.version };
  }
  const work: Work = { ...workOf(input), binary, from: running.version, original: running.process };
  return { kind: 'begin', as: { ...first, work, spent: {} } };
}

function workOf({ signal, policy }: NewSignalInput): StagedWork {
  return { signal: signalKeyOf(signal), ...(Object.keys(policy).length > 0 && { policy }) };
}

function fromOf({ running }: ServiceFacts): { from?: string } {
  return running === undefined ? {} : { from: running.version };
}
