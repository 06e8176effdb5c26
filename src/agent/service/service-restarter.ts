/** Restarts the service through its service manager. If no manager runs the service, it sends SIGTERM. */
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { SupervisorAccount } from './crash-story.ts';
import { isSameProcess, type ProcessId } from './host.ts';
import { findProcess, sendSignal } from './processes.ts';
import type { ManagedService, ServiceManager } from './service-manager.ts';

export interface ServiceRestarter {
  /**
   * Orders the restart of the service, whose last process is `process`. Does not wait for that process to end. May be
   * repeated. Rejects if nothing can restart the service.
   */
  readonly restart: (process: ProcessId, binary: string) => Promise<void>;
  /**
   * Returns what the service manager knows about the service from the time `since` on. `since` is in milliseconds since
   * the Unix epoch. Returns undefined if no manager knows the service, or the manager does not answer.
   */
  readonly account: (
    process: ProcessId,
    binary: string,
    since: number,
  ) => Promise<SupervisorAccount | undefined>;
}

/**
 * Returns a restarter that asks these managers in order, and uses SIGTERM if none of them runs the
 * service.
 */
export function serviceRestarter(
  managers: readonly ServiceManager[],
  log: Logger,
): ServiceRestarter {
  const logAs = (what: string) => (error: unknown) => {
    log.debug(what, { reason: messageOf(error) });
    return undefined;
  };
  const find = async (process: ProcessId, binary: string): Promise<ManagedService | undefined> => {
    for (const manager of managers) {
      const service = await manager
        .find(process, binary)
        .catch(logAs('a service manager did not answer'));
      if (service !== undefined) return service;
    }
    return undefined;
  };
  return {
    async restart(process, binary) {
      // The service manager is asked even if the process has ended already, because a manager that has stopped its own
      // restarts can start the service again.
      const service = await find(process, binary);
      if (service?.isRestarting) return;
      if (service === undefined) return terminate(process, log);
      try {
        await service.restart();
        log.info('restart ordered', { of: service.title });
      } catch (error) {
        const fields = { of: service.title, reason: messageOf(error) };
        log.warn('the service manager failed; sending SIGTERM instead', fields);
        terminate(process, log);
      }
    },
    async account(process, binary, since) {
      const service = await find(process, binary);
      return await service
        ?.account(since)
        .catch(logAs('the service manager does not say how the service ended'));
    },
  };
}

/** Sends SIGTERM. If the supervisor is unknown but still runs, it starts the service again by itself. */
function terminate(process: ProcessId, log: Logger): void {
  const { pid, parent } = process;
  if (isSameProcess(findProcess(pid), process)) {
    log.info('restart by SIGTERM', { pid });
    return sendSignal(pid, 'SIGTERM');
  }
  if (findProcess(parent) !== undefined)
    return log.warn('the process has already ended: waiting for its supervisor to start it', {
      pid,
      of: parent,
    });
  const gone = `PID ${pid} and its supervisor (PID ${parent}) are gone, and no service manager knows the service`;
  throw new Error(`cannot restart the service: ${gone}`);
}
