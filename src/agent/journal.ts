/** The agent's memory: which signal it works on, and how far it got. */
import type { AgentPolicy, AgentReport, SignalData } from '../signal/annotations.ts';
import type { ProcessId } from './service/host.ts';

/**
 * How far an update got. A phase ending in -ing is written before its step, so the step may be half done:
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

/** One signal: two with equal members are the same signal. */
export type SignalKey = Omit<SignalData, 'status'>;

/** An airgapupdate: it needs no facts about the host. */
export interface BundleWork {
  readonly signal: SignalKey;
  /** Kept here because no API server may answer while the service is down. */
  readonly policy?: AgentPolicy;
}

/** A k0supdate, with what the agent found when it took the signal up. */
export interface Work extends BundleWork {
  /** Absolute path of the binary to replace. */
  readonly binary: string;
  readonly from: string;
  readonly original: ProcessId;
}

export interface Failure extends Pick<AgentReport, 'late' | 'refused'> {
  readonly status: 'FailedDownload' | 'Failed';
  readonly reason: string;
  /** False when the roll-back did not work, or nobody knows: the service may restart at any time. */
  readonly rolledBack?: false;
}

interface Progress {
  readonly failure?: Failure | undefined;
  /** Current status on the object, and when it was entered (steady milliseconds). */
  readonly entered?: { readonly status: string; readonly at: number };
  /** Milliseconds spent in each earlier status. */
  readonly spent: Readonly<Record<string, number>>;
}

export interface UpdateJournal extends Progress {
  readonly phase: UpdatePhase;
  readonly work: Work;
  /** Process that the last restart ends. */
  readonly process?: ProcessId | undefined;
  /** Process of the wanted version, while the agent watches it. */
  readonly fresh?: ProcessId | undefined;
  /** Start of the last restart, or of the watch over `fresh` (steady milliseconds). */
  readonly since?: number;
  /** When the last restart was ordered (steady milliseconds); a restarted agent does not reset it. */
  readonly restartedAt?: number;
  /** The agent's own cordon and drain, if any. `undone`: uncordoned. `stuck`: not uncordoned when the failure was reported. */
  readonly drain?: 'started' | 'done' | 'undone' | 'stuck';
  /** True when it was taken up at Cordoning, after its journal was lost. */
  readonly begunLate?: true;
}

export interface BundleJournal extends Progress {
  /** How far an airgap bundle got: wanted → placed, or missed. A kubeadm host: wanted → placed → upgraded, or missed. */
  readonly phase: 'wanted' | 'placed' | 'upgraded' | 'missed';
  readonly work: BundleWork;
}

export type ActiveJournal = UpdateJournal | BundleJournal;
export type Journal = { readonly phase: 'idle' } | ActiveJournal;

export function signalKeyOf({ planId, created, command }: SignalKey): SignalKey {
  return { planId, created, command };
}

export const IDLE: Journal = { phase: 'idle' };

export function isBundle(journal: ActiveJournal): journal is BundleJournal {
  const { phase } = journal;
  return phase === 'wanted' || phase === 'placed' || phase === 'upgraded' || phase === 'missed';
}

/** True when the node may have a cordon that the agent itself set. */
export function mayBeCordoned({ drain }: UpdateJournal): boolean {
  return drain === 'started' || drain === 'done' || drain === 'stuck';
}
