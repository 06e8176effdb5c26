/** Defines the agent's memory: on which signal it works, and which steps it has finished. */
import type { AgentPolicy, AgentReport, EtcdSnapshot, SignalData } from '../signal/annotations.ts';
import type { ProcessId } from './service/host.ts';

/**
 * The last phase that an update reached. A phase that ends in -ing is written before its step, so the step may be half
 * done:
 *
 *     started → downloaded → ready → kept → swapping → swapped → restarting → restarted → soaking → proven
 *                                               └──────────┴───────────┴──────────┴─────────┴→ swappingBack
 *     swappingBack → swappedBack → restartingBack → restartedBack
 *     failed: from any phase that has not changed the target path, and from a roll-back that did not work
 */
export type UpdatePhase =
  | 'started'
  | 'downloaded'
  | 'ready'
  | 'kept'
  | 'swapping'
  | 'swapped'
  | 'restarting'
  | 'restarted'
  | 'soaking'
  | 'proven'
  | 'swappingBack'
  | 'swappedBack'
  | 'restartingBack'
  | 'restartedBack'
  | 'failed';

/** Identifies a signal: two signals with equal members are the same. */
export type SignalKey = Omit<SignalData, 'status'>;

/**
 * Work that first stages files, and needs no facts about the service: an airgap bundle, or the upgrade of a host by a
 * procedure.
 */
export interface StagedWork {
  readonly signal: SignalKey;
  /** The policy is kept here because no API server may answer while the service is down. */
  readonly policy?: AgentPolicy;
}

/** The work of a k0supdate, with what the agent found when the work started. */
export interface Work extends StagedWork {
  /** The absolute path of the binary to replace. */
  readonly binary: string;
  readonly from: string;
  readonly original: ProcessId;
}

export interface Failure extends Pick<AgentReport, 'late' | 'refused'> {
  readonly status: 'FailedDownload' | 'Failed';
  readonly reason: string;
  /** False if the roll-back did not succeed, or if its result is not known. The service may then restart at any time. */
  readonly rolledBack?: false;
}

interface Progress {
  /** The version of the kept binary that was removed to make room for the download. */
  readonly removed?: string;
  /** The version whose airgap bundles were removed to make room for the download. */
  readonly removedBundle?: string;
  readonly failure?: Failure | undefined;
  /**
   * The current status on the object, and the time at which the object got this status, in milliseconds of the steady
   * clock.
   */
  readonly entered?: { readonly status: string; readonly at: number };
  /** The milliseconds that the upgrade spent in each earlier status. */
  readonly spent: Readonly<Record<string, number>>;
}

export interface UpdateJournal extends Progress {
  readonly phase: UpdatePhase;
  readonly work: Work;
  /** The process that was running when the last restart was ordered, and that this restart is to end. */
  readonly process?: ProcessId | undefined;
  /** The process of the wanted version, while the agent watches it. */
  readonly fresh?: ProcessId | undefined;
  /**
   * The time at which the last restart began, or at which the agent began to watch `fresh`, in milliseconds of the
   * steady clock.
   */
  readonly since?: number;
  /**
   * The time at which the last restart was ordered, in milliseconds of the steady clock. A restart of the agent does
   * not change it.
   */
  readonly restartedAt?: number;
  /**
   * The state of the agent's own cordon and drain, if there is one. `undone` means uncordoned. `stuck` means that the
   * node was still cordoned when the failure was reported.
   */
  readonly drain?: 'started' | 'done' | 'undone' | 'stuck';
  /** The snapshot of etcd; undefined until the agent has taken it or has tried to take it. */
  readonly snapshot?: EtcdSnapshot;
  /** The milliseconds for which the new process had worked when it was proven; undefined if nothing was restarted. */
  readonly upMs?: number;
  /** True if the agent started at the status Cordoning, because its journal was lost. */
  readonly begunLate?: true;
}

export interface StagedJournal extends Progress {
  /**
   * The last phase that the work reached. For an airgap bundle: wanted → placed, or missed. For a procedure: wanted →
   * placed → upgraded, or missed.
   */
  readonly phase: 'wanted' | 'placed' | 'upgraded' | 'missed';
  readonly work: StagedWork;
}

export type ActiveJournal = UpdateJournal | StagedJournal;
export type Journal = { readonly phase: 'idle' } | ActiveJournal;

/** Returns the members that identify the signal. */
export function signalKeyOf({ planId, created, command }: SignalKey): SignalKey {
  return { planId, created, command };
}

export const IDLE: Journal = { phase: 'idle' };

/** Returns true if the journal is about an airgap bundle, or about the upgrade of a host by a procedure. */
export function isStaged(journal: ActiveJournal): journal is StagedJournal {
  const { phase } = journal;
  return phase === 'wanted' || phase === 'placed' || phase === 'upgraded' || phase === 'missed';
}

/** Returns true if the node may have a cordon that the agent itself set. */
export function mayBeCordoned({ drain }: UpdateJournal): boolean {
  return drain === 'started' || drain === 'done' || drain === 'stuck';
}
