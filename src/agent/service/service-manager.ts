/** A service manager: it starts the service of this host, and can restart it. */
import type { SupervisorAccount } from './crash-story.ts';
import type { ProcessId } from './host.ts';

export interface ManagedService {
  /** For people, such as `systemd unit k0sworker.service`. */
  readonly title: string;
  /** True when the manager already runs another process of the service, or starts one soon: then no restart is needed. */
  readonly isRestarting: boolean;
  /** Orders the restart without waiting for the process to end; rejects with the manager's error. */
  restart(): Promise<void>;
  /** What it knows of the service since `since` (wall-clock milliseconds). */
  account(since: number): Promise<SupervisorAccount>;
}

export interface ServiceManager {
  /** The service that `process` is, or was; undefined when another manager runs it. `binary` is the file that it executes. */
  find(process: ProcessId, binary: string): Promise<ManagedService | undefined>;
}
