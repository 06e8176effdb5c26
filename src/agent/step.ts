/** Owns the vocabulary of the agent: every step it can take, and what may come of one. */
import type { SignalStatus } from '../signal/names.ts';
import type { ProcessId } from './host.ts';
import type { Work } from './work.ts';

/** Each comment says what the step does to the host; a step that is cut short anywhere is simply taken again. */
export type Step =
  /** Nothing to do until the object changes. */
  | { readonly kind: 'nothing' }
  /** The service must answer first; `until` (steady milliseconds) is set while a restart is pending. */
  | { readonly kind: 'await-service'; readonly until?: number }
  /** Takes a signal up: changes the journal only. */
  | { readonly kind: 'begin'; readonly work: Work }
  /** Puts the verified payload at the staging path, fetching only what is not there yet. */
  | { readonly kind: 'download' }
  /** Runs the staged binary with `version`. */
  | { readonly kind: 'try-out' }
  /** Makes the previous path a second name of the binary at the target path. */
  | { readonly kind: 'keep-previous' }
  /** Replaces the binary at the target path by the staged one, in one rename. */
  | { readonly kind: 'swap' }
  /** Sends SIGTERM to the process if it still lives; its supervisor starts the binary at the target path. */
  | { readonly kind: 'restart'; readonly process?: ProcessId }
  /** Sends SIGKILL to a process that outlived its SIGTERM. */
  | { readonly kind: 'kill'; readonly process: ProcessId }
  /** Replaces the binary at the target path by the previous one, in one rename. */
  | { readonly kind: 'roll-back'; readonly reason: string }
  /** Writes the status to the object; touches nothing on the host. */
  | {
      readonly kind: 'report';
      readonly status: SignalStatus;
      readonly reason?: string;
      readonly rolledBack?: boolean;
      /** Running version, where no work records it. */
      readonly from?: string;
    }
  /** Removes staged and partial files and forgets the work; the previous binary stays. */
  | { readonly kind: 'clean-up' };

/** What came of a step: its reason is for people. */
export type Outcome = { readonly ok: true } | { readonly ok: false; readonly reason: string };
