/** Owns the contract of a service manager: who starts the service of this host, and can be told to do it at once. */
import type { ProcessId } from './host.ts';

export interface ManagedService {
  /** For people, such as `systemd unit k0sworker.service`. */
  readonly title: string;
  /** True where the manager keeps another process of the service alive, or starts one soon: nothing is to be ordered then. */
  readonly isTakenCareOf: boolean;
  /** Orders the restart, without waiting for the process to end; rejects with the manager's own reason. */
  restart(): Promise<void>;
}

export interface ServiceManager {
  /**
   * The service that `process` is, or was where it is gone, as this manager knows it; undefined where another one starts
   * it. `binary` is the file that it executes.
   */
  find(process: ProcessId, binary: string): Promise<ManagedService | undefined>;
}
