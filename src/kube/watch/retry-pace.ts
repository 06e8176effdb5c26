/**
 * Computes how long to wait after a failed list or watch, and whether the remembered version may be
 * the cause.
 */
import { backoffDelay, type Clock } from '../../util/clock.ts';
import * as status from '../status-error.ts';

/**
 * The pauses in milliseconds after failures of the server, and after refusals. A server that does not answer may
 * recover at any moment, but a refusal is likely to repeat.
 */
const RETRY = { base: 200, cap: 2_000, denialCap: 30_000 };
/**
 * The time in milliseconds after the last failure of the server itself in which its refusals do not count. A server
 * that has just started may refuse requests that its roles allow.
 */
const STARTING_MS = 15_000;
/**
 * The number of failures in a row after which the list is read again, because the remembered
 * version may be the cause.
 */
const FAILURES_BEFORE_RELIST = 5;
/**
 * The milliseconds without any data, not even the bookmark that comes each minute, after which the remembered version
 * may be the cause. A server that was restored from a backup sends nothing until it reaches the remembered version.
 */
const SILENT_MS = 150_000;

export interface RetryPace {
  /** Must be called when the server has sent data. It resets the number of failures in a row. */
  succeeded(): void;
  /**
   * Returns true if the remembered resourceVersion may be the cause of the failures, so that the list must be read
   * again. A server that repeatedly answers with failures may reject the version. A server that did not answer for a
   * while may have been restored from an older state.
   */
  isSuspect(thrown: unknown): boolean;
  /** Records a failure. If a server answers again after an outage, the pauses begin again with the shortest pause. */
  failed(thrown: unknown): RetryPause;
}

export interface RetryPause {
  /** Milliseconds until the next attempt. */
  readonly pauseMs: number;
  /** True if the failure is so common that it is not worth a warning in the log. */
  readonly isRoutine: boolean;
}

/** Returns a counter of failures in a row. The pause grows with their number. */
export function retryPace(clock: Clock, random: () => number): RetryPace {
  let failures = 0;
  let heardAt = clock.monotonic();
  /** The time of the last failure of the server itself: no answer, or an error of 500 or more. */
  let awayAt = Number.NEGATIVE_INFINITY;
  let wasAway = false;
  return {
    succeeded() {
      failures = 0;
      heardAt = clock.monotonic();
    },
    isSuspect: (thrown) =>
      clock.monotonic() - heardAt >= SILENT_MS ||
      (failures + 1 >= FAILURES_BEFORE_RELIST && !(thrown instanceof status.TransportError)),
    failed(thrown) {
      const now = clock.monotonic();
      const isAway = !(thrown instanceof status.StatusError) || thrown.code >= 500;
      if (isAway) awayAt = now;
      else if (wasAway) failures = 0;
      wasAway = isAway;
      const isDenied =
        status.isForbidden(thrown) || status.isUnauthorized(thrown) || status.isNotFound(thrown);
      const cap = isDenied && now - awayAt >= STARTING_MS ? RETRY.denialCap : RETRY.cap;
      const asked = thrown instanceof status.StatusError ? (thrown.retryAfterMs ?? 0) : 0;
      const backoffMs = backoffDelay(failures, { base: RETRY.base, cap, random });
      failures++;
      const pauseMs = Math.max(asked, backoffMs);
      // A single broken stream is routine. Only a refusal, or a third failure in a row, is worth a warning.
      return { pauseMs, isRoutine: failures <= 2 && !isDenied };
    },
  };
}
