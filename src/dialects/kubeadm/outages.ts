/** Warnings about an API server that kubeadm replaces at this moment: one line stands for all of them. */
import type { Clock } from '../../util/clock.ts';
import type { LogFields, Logger } from '../../util/log.ts';

/** Milliseconds: a new API server refuses what it allows once it has read its roles. */
export const REFUSED_MS = 60_000;

export class ExpectedOutages {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #hosts = new Set<string>();
  #isSaid = false;
  #refusedAt = Number.POSITIVE_INFINITY;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Everything that asks API servers logs here. */
  logger(log: Logger): Logger {
    return {
      ...log,
      warn: (message, fields = {}) => this.#warn(log, message, fields),
      child: (fields) => this.logger(log.child(fields)),
    };
  }

  begin(host: string): void {
    if (this.#hosts.size === 0) this.#refusedAt = Number.POSITIVE_INFINITY;
    this.#hosts.add(host);
  }

  end(host: string): void {
    this.#hosts.delete(host);
    this.#isSaid = false;
  }

  #warn(log: Logger, message: string, fields: LogFields): void {
    const { problem } = fields;
    const now = this.#clock.monotonic();
    const isRefused = /forbidden|unauthorized/i.test(String(problem));
    if (isRefused) this.#refusedAt = Math.min(this.#refusedAt, now);
    const isLasting = isRefused && now - this.#refusedAt >= REFUSED_MS;
    if (this.#hosts.size === 0 || problem === undefined || isLasting) return log.warn(message, fields);
    log.debug(message, fields);
    if (this.#isSaid) return;
    this.#isSaid = true;
    log.warn('kubeadm replaces the API server: until it is back, requests fail', { hosts: [...this.#hosts] });
  }
}
