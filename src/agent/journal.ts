/** Owns the agent's memory: which signal it works on and how far it got. */
import type { ProcessId } from './service/host.ts';
import type { BundleWork, Work } from './work.ts';

/**
 * How far an update got. A phase that ends in -ing was written before its step and says that the step may be half done:
 *
 *     started → downloaded → ready → kept → swapping → swapped → restarting → restarted → soaking → proven
 *                                                └──────────┴───────────┴──────────┴─────────┴→ restoring → restored → reviving → revived
 *     failed: from any phase that has not changed what the target path holds, and from a roll-back that did not work
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

/** How far an airgap bundle got: wanted → placed, or missed. */
export type BundlePhase = 'wanted' | 'placed' | 'missed';

export interface Failure {
  readonly status: 'FailedDownload' | 'Failed';
  readonly reason: string;
  /** As it is reported. */
  readonly late?: 'drain';
}

interface Progress {
  /** Why the work ends badly, once it does. */
  readonly failure?: Failure;
  /** The status on the object, and the steady milliseconds at which it was entered. */
  readonly entered?: { readonly status: string; readonly at: number };
  /** Milliseconds spent in each status that is over. */
  readonly spent: Readonly<Record<string, number>>;
}

/**
 * What the agent itself did about its node's cordon: begun and made, or not quite; given back; `stuck` where it could not
 * be given back before the failure was reported. Absent: nothing, as where the leader cordons.
 */
export type Way = 'begun' | 'made' | 'given-back' | 'stuck';

export interface UpdateJournal extends Progress {
  readonly phase: UpdatePhase;
  readonly work: Work;
  /** Process that the last restart ends. */
  readonly process?: ProcessId;
  /** Process that runs what is wanted, while it is watched. */
  readonly fresh?: ProcessId;
  /** Steady milliseconds at which the last restart, or the watch over the fresh process, began. */
  readonly since?: number;
  /** Steady milliseconds at which the last restart was asked for; a restarted agent does not count it anew. */
  readonly restartedAt?: number;
  readonly way?: Way;
}

export interface BundleJournal extends Progress {
  readonly phase: BundlePhase;
  readonly work: BundleWork;
}

export type ActiveJournal = UpdateJournal | BundleJournal;
export type Journal = { readonly phase: 'idle' } | ActiveJournal;

export const IDLE: Journal = { phase: 'idle' };

export function isBundle(journal: ActiveJournal): journal is BundleJournal {
  return journal.phase === 'wanted' || journal.phase === 'placed' || journal.phase === 'missed';
}

/** True where the node may bear a cordon that the agent itself set. */
export function isHolding({ way }: UpdateJournal): boolean {
  return way === 'begun' || way === 'made' || way === 'stuck';
}
