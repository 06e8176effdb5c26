/** Logs one line in place of the many warnings that occur while kubeadm replaces an API server. */
import type { MonotonicClock } from '../../../util/clock.ts';
import { messageOf } from '../../../util/errors.ts';
import type { LogFields, Logger } from '../../../util/log.ts';

/**
 * The number of milliseconds after the first refused request in which refusals are expected. A new API server refuses
 * all requests until it has read its roles.
 */
export const REFUSED_MS = 60_000;

export interface ExpectedOutages {
  /** Returns the logger for everything that sends requests to API servers. */
  logger(log: Logger): Logger;
  /** Informs the logger that kubeadm starts to replace the API server of `host`. */
  begin(host: string): void;
  /** Informs the logger that the API server of `host` should answer again. */
  end(host: string): void;
}

export function expectedOutages(clock: MonotonicClock): ExpectedOutages {
  const hosts = new Set<string>();
  let isSaid = false;
  let refusedAt = Number.POSITIVE_INFINITY;
  const warn = (log: Logger, message: string, fields: LogFields): void => {
    const { problem } = fields;
    const now = clock.monotonic();
    const isRefused = /forbidden|unauthorized/i.test(messageOf(problem));
    if (isRefused) refusedAt = Math.min(refusedAt, now);
    const isLasting = isRefused && now - refusedAt >= REFUSED_MS;
    if (hosts.size === 0 || problem === undefined || isLasting) return log.warn(message, fields);
    log.debug(message, fields);
    if (isSaid) return;
    isSaid = true;
    log.warn('kubeadm replaces the API server: until it is back, requests fail', {
      hosts: [...hosts],
    });
  };
  const logger = (log: Logger): Logger => ({
    ...log,
    warn: (message, fields = {}) => warn(log, message, fields),
    child: (fields) => logger(log.child(fields)),
  });
  return {
    logger,
    begin(host) {
      if (hosts.size === 0) refusedAt = Number.POSITIVE_INFINITY;
      hosts.add(host);
    },
    end(host) {
      hosts.delete(host);
      isSaid = false;
    },
  };
}
