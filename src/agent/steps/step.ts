/** Defines every step that the agent can take, and its possible outcomes. */
import type { AgentReport, EtcdSnapshot } from '../../signal/annotations.ts';
import type { SignalStatus } from '../../signal/names.ts';
import type { ActiveJournal } from '../journal.ts';
import type { ProcessId } from '../service/host.ts';

/** Each comment says what the step does to the host. A step that was interrupted is repeated. */
export type Step =
  /** Waits for a change of the object. */
  | { readonly kind: 'nothing' }
  /**
   * Waits for the service to answer, or watches the service. `until` is the deadline in milliseconds of the steady
   * clock; absent if there is no deadline.
   */
  | { readonly kind: 'await-service'; readonly until?: number }
  /** Waits for the leader to act, or until it is known who cordons. */
  | { readonly kind: 'await-leader' }
  /** Waits until this host's clock is right. The reason says which time the clock shows. */
  | { readonly kind: 'await-clock'; readonly reason: string }
  /** Waits until it is known whether k0s on this host runs its own agent. The reason says why it is not known. */
  | { readonly kind: 'await-own-agent'; readonly reason: string }
  /** Starts the work of a signal. Changes only the journal. */
  | { readonly kind: 'begin'; readonly as: ActiveJournal }
  /** Puts the verified payload at the staging path. Downloads only what is missing. */
  | { readonly kind: 'download' }
  /** Runs the staged binary with the argument `version`. */
  | { readonly kind: 'trial-run' }
  /**
   * Saves etcd of a controller to a file in the state directory. If the host still has the snapshot that was reported for the same
   * signal, the step uses that snapshot.
   */
  | { readonly kind: 'snapshot-etcd'; readonly reported?: EtcdSnapshot }
  | { readonly kind: 'cordon-and-drain' }
  /** Creates a second hard link to the binary at the target path. The link is at the previous path. */
  | { readonly kind: 'keep-previous' }
  /**
   * Replaces the binary at the target path by the staged one, in one rename. If `overtakes` is set, k0s's own agent may
   * swap the same binary. The step then first takes the file away that this agent would put in place, and leaves the
   * binary as it is if that agent was faster.
   */
  | { readonly kind: 'swap'; readonly overtakes?: true }
  /** Records that the work failed before the agent changed the service. Changes only the journal. */
  | { readonly kind: 'give-up'; readonly reason: string; readonly refused?: true }
  /**
   * Restarts the service. Ends its process if that process is still running, and starts the binary at the target path.
   */
  | { readonly kind: 'restart'; readonly process?: ProcessId | undefined }
  /** Sends SIGKILL to a process that did not end at the restart. */
  | { readonly kind: 'kill'; readonly process: ProcessId }
  /**
   * Starts the soak time, in which this process must keep running. Changes only the journal. If `overtakes` is set, the step
   * also takes the file of k0s's own agent away again: the download of that agent may have ended after the swap.
   */
  | { readonly kind: 'soak'; readonly process: ProcessId; readonly overtakes?: true }
  /** Replaces the binary at the target path by the previous one, in one rename. */
  | { readonly kind: 'roll-back'; readonly reason: string }
  | { readonly kind: 'uncordon' }
  /** Puts the verified bundle into the images directory, and removes older bundles of the agent. */
  | { readonly kind: 'fetch-bundle' }
  /** The procedure of the host stages the payload and checks the host. */
  | { readonly kind: 'stage-upgrade' }
  /** The procedure of the host installs what it has staged. */
  | { readonly kind: 'upgrade-host' }
  /** Leaves the signal to k0s's own agent. Removes staged and partial files, and removes the work from the journal. */
  | { readonly kind: 'stand-aside'; readonly reason: string }
  /** Writes the status to the object. Does not touch the host. */
  | (Omit<AgentReport, 'created' | 'spent'> & {
      readonly kind: 'report';
      readonly status: SignalStatus;
    })
  /** Removes staged and partial files, and removes the work from the journal. The previous binary stays. */
  | { readonly kind: 'clean-up' };

/** The versions that were removed to make room for a download. */
export interface Removals {
  /** The version of the kept binary. */
  readonly removed?: string;
  /** The version of the previous airgap bundles. */
  readonly removedBundle?: string;
}

/**
 * `late` names the step that exceeded its time limit, and `error` is what was thrown. `snapshot` is the result of the step `snapshot-etcd`.
 */
export type StepOutcome =
  | ({ readonly ok: true; readonly snapshot?: EtcdSnapshot } & Removals)
  | ({
      readonly ok: false;
      readonly reason: string;
      readonly late?: 'drain';
      readonly error?: unknown;
    } & Removals);

/** Returns the step that puts the previous binary back. `reason` is for people. */
export function rollBack(reason: string): Step {
  return { kind: 'roll-back', reason };
}
