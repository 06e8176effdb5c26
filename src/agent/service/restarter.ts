/** Owns the contract of restarting the service. */
import type { ProcessId } from './host.ts';

export interface Restarter {
  /**
   * Orders a restart, after which the file at `binary` is to run; resolves once that is ordered, without waiting for the
   * process to end. `process` is the one that ran last and may be gone: then a service manager that has given up is told
   * to start the service again. Harmless when repeated; rejects where nothing can restart it.
   */
  restart(process: ProcessId, binary: string): Promise<void>;
}
