/** Owns how the service is restarted: through whatever manages it, so that no pause is waited for, else by SIGTERM. */
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { ProcessId } from './host.ts';
import { isSameProcess } from './host.ts';
import { endProcess, findProcess } from './processes.ts';
import type { ManagedService, ServiceManager } from './service-manager.ts';

export class ServiceRestarter {
  readonly #managers: readonly ServiceManager[];
  readonly #log: Logger;

  constructor(managers: readonly ServiceManager[], log: Logger) {
    this.#managers = managers;
    this.#log = log;
  }

  async restart(process: ProcessId, binary: string): Promise<void> {
    const service = await this.#find(process, binary);
    if (service?.isTakenCareOf) return;
    if (service === undefined) return await this.#endOrTrust(process);
    try {
      await service.restart();
      this.#log.info('restart ordered', { of: service.title });
    } catch (error) {
      this.#log.warn('the service manager failed: SIGTERM instead', { of: service.title, reason: messageOf(error) });
      await this.#endOrTrust(process);
    }
  }

  async #find(process: ProcessId, binary: string): Promise<ManagedService | undefined> {
    for (const manager of this.#managers) {
      const service = await manager.find(process, binary).catch((error: unknown) => {
        this.#log.debug('no answer from a service manager', { reason: messageOf(error) });
        return undefined;
      });
      if (service !== undefined) return service;
    }
    return undefined;
  }

  /** A supervisor that is not known starts the service again by itself, for as long as it lives. */
  async #endOrTrust(process: ProcessId): Promise<void> {
    const isAlive = isSameProcess(await findProcess(process.pid), process);
    if (isAlive) {
      this.#log.info('restart by SIGTERM', { pid: process.pid });
      return await endProcess(process, 'SIGTERM');
    }
    if ((await findProcess(process.parent)) !== undefined) return;
    throw new Error(
      `PID ${process.pid} is gone, PID ${process.parent} that started it too, and no service manager knows it`,
    );
  }
}
