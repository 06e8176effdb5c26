/** Defines a service manager, which starts the service of this host and can restart it. */
import type { SupervisorAccount } from './crash-story.ts';
import type { ProcessId } from './host.ts';

export interface ManagedService {
  /** Names the service for people, such as `systemd unit k0sworker.service`. */
  readonly title: string;
  /**
   * True if the manager already runs another process of the service, or will soon start one. Then no restart is needed.
   */
  readonly isRestarting: boolean;
  /** Requests the restart without waiting for the process to end. Rejects with the manager's error. */
  restart(): Promise<void>;
  /**
   * Returns what the manager knows about the service from the time `since` on. `since` is in milliseconds since the
   * Unix epoch.
   */
  account(since: number): Promise<SupervisorAccount>;
}

export interface ServiceManager {
  /**
   * Returns the service to which `process` belongs, even if the process has ended. Returns undefined if this manager
   * does not run the service. `binary` is the file that the process executes.
   */
  find(process: ProcessId, binary: string): Promise<ManagedService | undefined>;
}
