/** Restarts the service through its service manager, else with SIGTERM. */
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { SupervisorAccount } from './crash-story.ts';
import { isSameProcess, type ProcessId } from './host.ts';
import { findProcess, sendSignal } from './processes.ts';
import type { ManagedService, ServiceManager } from './service-manager.ts';

export type ServiceRestarter = ReturnType<typeof serviceRestarter>;

export function serviceRestarter(managers: readonly ServiceManager[], log: Logger) {
  const tell = (what: string) => (error: unknown) => {
    log.debug(what, { reason: messageOf(error) });
    return undefined;
  };
  const find = async (process: ProcessId, binary: string): Promise<ManagedService | undefined> => {
    for (const manager of managers) {
      const service = await manager
        .find(process, binary)
        .catch(tell('a service manager did not answer'));
      if (service !== undefined) return service;
    }
    return undefined;
  };
  return {
    /** Does not wait for the end of `process`, which ran last. May be repeated; rejects when nothing can restart. */
    async restart(process: ProcessId, binary: string): Promise<void> {
      // Also where the process is gone: a manager that has given up starts the service again.
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
    /** Undefined if no service manager knows the service, or does not answer. */
    async account(
      process: ProcessId,
      binary: string,
      since: number,
    ): Promise<SupervisorAccount | undefined> {
      const service = await find(process, binary);
      return await service
        ?.account(since)
        .catch(tell('the service manager does not say how the service ended'));
    },
  };
}

/** An unknown supervisor starts the service again by itself, while it lives. */
function terminate(process: ProcessId, log: Logger): void {
  const { pid, parent } = process;
  if (isSameProcess(findProcess(pid), process)) {
    log.info('restart by SIGTERM', { pid });
    return sendSignal(pid, 'SIGTERM');
  }
  if (findProcess(parent) !== undefined)
    return log.warn('no restart was ordered: waiting for the supervisor', { pid, of: parent });
  const gone = `PID ${pid} and its supervisor (PID ${parent}) are gone, and no service manager knows it`;
  throw new Error(`cannot restart the service: ${gone}`);
}
