/** Warnings about an API server that kubeadm replaces at this moment: one line stands for all of them. */
import type { LogFields, Logger } from '../../util/log.ts';

export class ExpectedOutages {
  readonly #hosts = new Set<string>();
  #isSaid = false;

  /** Everything that asks API servers logs here. */
  logger(log: Logger): Logger {
    return {
      ...log,
      warn: (message, fields = {}) => this.#warn(log, message, fields),
      child: (fields) => this.logger(log.child(fields)),
    };
  }

  begin(host: string): void {
    this.#hosts.add(host);
  }

  end(host: string): void {
    this.#hosts.delete(host);
    this.#isSaid = false;
  }

  #warn(log: Logger, message: string, fields: LogFields): void {
    if (this.#hosts.size === 0 || fields['problem'] === undefined) return log.warn(message, fields);
    log.debug(message, fields);
    if (this.#isSaid) return;
    this.#isSaid = true;
    log.warn('kubeadm replaces the API server: until it is back, requests fail', { hosts: [...this.#hosts] });
  }
}
