/** Restarts the service through its service manager, else with SIGTERM. */
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { SupervisorAccount } from './crash-story.ts';
import { isSameProcess, type ProcessId } from './host.ts';
import { findProcess, sendSignal } from './processes.ts';
import type { ManagedService, ServiceManager } from './service-manager.ts';

export class ServiceRestarter {
  readonly #managers: readonly ServiceManager[];
  readonly #log: Logger;

  constructor(managers: readonly ServiceManager[], log: Logger) {
    this.#managers = managers;
    this.#log = log;
  }

  /** Does not wait for the end of `process`, which ran last. May be repeated; rejects when nothing can restart. */
  async restart(process: ProcessId, binary: string): Promise<void> {
    // Also where the process is gone: a manager that has given up starts the service again.
    const service = await this.#find(process, binary);
    if (service?.isRestarting) return;
    if (service === undefined) return this.#terminate(process);
    try {
      await service.restart();
      this.#log.info('restart ordered', { of: service.title });
    } catch (error) {
      this.#log.warn('the service manager failed; sending SIGTERM instead', {
        of: service.title,
        reason: messageOf(error),
      });
      this.#terminate(process);
    }
  }

  /** Undefined if no service manager knows the service, or does not answer. */
  async account(process: ProcessId, binary: string, since: number): Promise<SupervisorAccount | undefined> {
    return await (await this.#find(process, binary))?.account(since).catch((error: unknown) => {
      this.#log.debug('the service manager does not say how the service ended', { reason: messageOf(error) });
      return undefined;
    });
  }

  async #find(process: ProcessId, binary: string): Promise<ManagedService | undefined> {
    for (const manager of this.#managers) {
      const service = await manager.find(process, binary).catch((error: unknown) => {
        this.#log.debug('a service manager did not answer', { reason: messageOf(error) });
        return undefined;
      });
      if (service !== undefined) return service;
    }
    return undefined;
  }

  /** An unknown supervisor starts the service again by itself, while it lives. */
  #terminate(process: ProcessId): void {
    const { pid, parent } = process;
    if (isSameProcess(findProcess(pid), process)) {
      this.#log.info('restart by SIGTERM', { pid });
      return sendSignal(pid, 'SIGTERM');
    }
    if (findProcess(parent) !== undefined)
      return this.#log.warn('no restart was ordered: waiting for the supervisor', { pid, of: parent });
    throw new Error(
      `cannot restart the service: PID ${pid} and its supervisor (PID ${parent}) are gone, and no service manager knows it`,
    );
  }
}
