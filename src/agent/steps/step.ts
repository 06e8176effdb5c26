/** Owns the vocabulary of the agent: every step it can take, and what may come of one. */
import type { SignalStatus } from '../../signal/names.ts';
import type { ActiveJournal } from '../journal.ts';
import type { ProcessId } from '../service/host.ts';

/** Each comment says what the step does to the host; a step that is cut short anywhere is simply taken again. */
export type Step =
  /** Nothing to do until the object changes. */
  | { readonly kind: 'nothing' }
  /** The service must answer first, or go on doing so; `until` (steady milliseconds) is set while it has a deadline. */
  | { readonly kind: 'await-service'; readonly until?: number }
  /** The leader must act first, or somebody must be there who can tell whether it does. */
  | { readonly kind: 'await-leader' }
  /** Takes a signal up: changes the journal only. */
  | { readonly kind: 'begin'; readonly as: ActiveJournal }
  /** Puts the verified payload at the staging path, fetching only what is not there yet. */
  | { readonly kind: 'download' }
  /** Runs the staged binary with `version`. */
  | { readonly kind: 'try-out' }
  /** Cordons and drains the own node. */
  | { readonly kind: 'cordon-and-drain' }
  /** Makes the previous path a second name of the binary at the target path. */
  | { readonly kind: 'keep-previous' }
  /** Replaces the binary at the target path by the staged one, in one rename. */
  | { readonly kind: 'swap' }
  /** Ends the work before anything was touched: changes the journal only. */
  | { readonly kind: 'give-up'; readonly reason: string }
  /** Has the service restarted: the process ends if it still lives, and the binary at the target path is started. */
  | { readonly kind: 'restart'; readonly process?: ProcessId }
  /** Sends SIGKILL to a process that outlived its restart. */
  | { readonly kind: 'kill'; readonly process: ProcessId }
  /** From here on this process must stay as it is: changes the journal only. */
  | { readonly kind: 'soak'; readonly process: ProcessId }
  /** Replaces the binary at the target path by the previous one, in one rename. */
  | { readonly kind: 'roll-back'; readonly reason: string }
  /** Removes our cordon from the own node. */
  | { readonly kind: 'uncordon' }
  /** Puts the verified bundle into the images directory, and removes older ones of ours. */
  | { readonly kind: 'fetch-bundle' }
  /** Writes the status to the object; touches nothing on the host. */
  | {
      readonly kind: 'report';
      readonly status: SignalStatus;
      readonly reason?: string;
      readonly rolledBack?: boolean;
      readonly late?: 'drain';
      /** Running version, where no work records it. */
      readonly from?: string;
    }
  /** Removes staged and partial files and forgets the work; the previous binary stays. */
  | { readonly kind: 'clean-up' };

/** What came of a step: its reason is for people. `late`: its time was over. */
export type StepOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly late?: 'drain' };
