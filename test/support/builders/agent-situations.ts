/** Situations of an agent as values: signals, journals and hosts, from which tables of steps are made. */
import {
  IDLE,
  type UpdateJournal,
  type UpdatePhase,
  type Work,
} from '../../../src/agent/journal.ts';
import type { ProcessId, ServiceFacts } from '../../../src/agent/service/host.ts';
import type { StepInput } from '../../../src/agent/step-input.ts';
import type { SignalData } from '../../../src/signal/annotations.ts';

export const OLD = 'v1.36.3+k0s.0';
export const NEW = 'v1.36.3+k0s.2';
export const BINARY = '/bin/k0s';
/** The process that ran before the update, and two that came after it. */
export const before: ProcessId = { pid: 100, started: 'boot/1', parent: 1 };
export const after: ProcessId = { pid: 200, started: 'boot/2', parent: 1 };
export const third: ProcessId = { pid: 300, started: 'boot/3', parent: 1 };
const command = {
  id: 0,
  kind: 'k0supdate',
  url: 'http://d/k0s',
  version: NEW,
  sha256: 'AB'.repeat(32),
} as const;
export const key: Work['signal'] = { planId: 'p', created: 'c', command };
export const forced: Work['signal'] = { ...key, command: { ...command, forceupdate: true } };
export const airgap: Work['signal'] = { ...key, command: { ...command, kind: 'airgapupdate' } };

export const NOW = 1_000_000;
export const TIMES = { restartTimeoutMs: 90_000, soakMs: 5_000, readyTimeoutMs: 120_000 };
/** The situation of a journal whose work ends badly. */
export const WHY = { failure: { status: 'Failed', reason: 'why' } } as const;

export function signalAt(status?: string, of: SignalData = key): SignalData {
  return status === undefined
    ? of
    : { ...of, status: { status, timestamp: '2026-01-01T00:00:00Z' } };
}

export function workFor(signal: Work['signal'] = key, more: Partial<Work> = {}): Work {
  return { signal, binary: BINARY, from: OLD, original: before, ...more };
}

export function journalAt(phase: UpdatePhase, more: Partial<UpdateJournal> = {}): UpdateJournal {
  return { phase, work: workFor(), spent: {}, ...more };
}

export const silent: ServiceFacts = { binary: BINARY };

/** The service answers; `current` is false where the file at the path is another one by now. */
export function running(version: string, process: ProcessId, current = true): ServiceFacts {
  return { ...silent, running: { version, process, current }, service: process };
}

/** A process lives and does not answer. */
export function hanging(process: ProcessId): ServiceFacts {
  return { ...silent, service: process };
}

/** Nothing in the journal, the old version runs, and the agent itself cordons. */
export function situation(more: Partial<StepInput> = {}): StepInput {
  return {
    signal: key,
    policy: {},
    journal: IDLE,
    host: running(OLD, before),
    node: { cordoner: 'self' },
    now: NOW,
    times: TIMES,
    accepts: ['k0supdate', 'airgapupdate'],
    ...more,
  };
}
