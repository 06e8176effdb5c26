/** Situations of an agent as values: signals, journals and hosts. Tests make their tables of steps from these values. */
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
/** The process that ran before the update, and two processes that started after it. */
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
/** The fields of a journal whose work has failed. */
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

/**
 * Facts of a service that answers. `current` is false if the file at the path is no longer the file that the process
 * runs.
 */
export function running(version: string, process: ProcessId, current = true): ServiceFacts {
  return { ...silent, running: { version, process, current }, service: process };
}

/** Facts of a service whose process lives and does not answer. */
export function hanging(process: ProcessId): ServiceFacts {
  return { ...silent, service: process };
}

/** A situation in which the journal is empty, the old version runs, and the agent itself cordons the node. */
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
