/** Owns the first step for a signal that nothing in the journal is about: a new one, or one whose journal was lost. */

import type { UpdateJournal } from '../journal.ts';
import type { HostFacts } from '../service/host.ts';
import type { Fresh } from '../step-input.ts';
import type { SignalKey, Work } from '../work.ts';
import type { Step } from './step.ts';

export function takeUp(input: Fresh): Step {
  const refusal = refusalOf(input);
  if (refusal !== undefined) {
    return { kind: 'report', status: 'FailedDownload', reason: refusal, ...fromOf(input.host) };
  }
  const { signal } = input;
  if (signal.command.kind === 'airgapupdate') {
    const work = { signal: keyOf(input), ...askedOf(input) };
    return { kind: 'begin', as: { phase: 'wanted', work, spent: {} } };
  }
  const isLate = ['ApplyingUpdate', 'Restart', 'UnCordoning'].includes(signal.status?.status ?? '');
  return isLate ? takeUpUnknown(input) : takeUpNew(input);
}

const SHA256 = /^[0-9a-f]{64}$/i;

function refusalOf({ signal: { command }, accepts }: Fresh): string | undefined {
  if (!accepts.includes(command.kind)) {
    return `this agent cannot carry out ${command.kind} here, only ${accepts.join(' and ')}`;
  }
  if (command.sha256 === undefined || SHA256.test(command.sha256)) return undefined;
  return `sha256 "${command.sha256}" is not 64 hexadecimal digits`;
}

function takeUpNew(input: Fresh): Step {
  const { signal, host, node } = input;
  const { running } = host;
  if (running === undefined) return { kind: 'await-service' };
  // A process that runs another file than the one at the path is as it should be only until its next start.
  const isThere = running.version === signal.command.version && running.current;
  if (isThere && signal.command.forceupdate !== true) {
    // Past Cordoning somebody may have cordoned the node for this signal, and undoes it only at UnCordoning; a cordon
    // of ours that an earlier signal left behind goes the same way.
    const isCordoned = signal.status?.status === 'Cordoning' || node.isCordoned === true;
    return { kind: 'report', status: isCordoned ? 'UnCordoning' : 'Completed', from: running.version };
  }
  return begin(input, { phase: 'started' });
}

/** The target path may hold either binary, and nothing says whether the previous one was kept: hands off. */
function takeUpUnknown(input: Fresh): Step {
  const { signal, host } = input;
  if (host.running === undefined) return { kind: 'await-service' };
  const { version, forceupdate } = signal.command;
  const status = signal.status?.status;
  // UnCordoning was written by one who saw the new process; before that, nothing proves a forced update any more.
  const isProof = forceupdate === true ? status === 'UnCordoning' : host.running.version === version;
  if (isProof) return begin(input, { phase: 'proven' });
  const reason = `the update stood at ${status}, but the agent's journal of it is gone`;
  return begin(input, { phase: 'failed', failure: { status: 'Failed', reason }, way: 'begun' });
}

function begin(input: Fresh, first: Pick<UpdateJournal, 'phase' | 'failure' | 'way'>): Step {
  const { running, binary } = input.host;
  if (running === undefined) return { kind: 'await-service' };
  if (binary === undefined) {
    const reason = `cannot tell which file PID ${running.process.pid} runs: pass --binary`;
    return { kind: 'report', status: 'Failed', reason, from: running.version };
  }
  const found = { binary, from: running.version, original: running.process };
  const work: Work = { signal: keyOf(input), ...found, ...askedOf(input) };
  return { kind: 'begin', as: { ...first, work, spent: {} } };
}

function keyOf({ signal: { planId, created, command } }: Fresh): SignalKey {
  return { planId, created, command };
}

function askedOf({ policy }: Fresh): Pick<Work, 'policy'> {
  return Object.keys(policy).length === 0 ? {} : { policy };
}

function fromOf({ running }: HostFacts): { from?: string } {
  return running === undefined ? {} : { from: running.version };
}
