/** Says how long to wait after a failed list or watch, and when the remembered version may be the cause. */
import { backoffDelay, type Clock } from '../../util/clock.ts';
import * as status from '../status-error.ts';

/** Milliseconds. A server that is away may be back at any moment; a denial repeats. */
const RETRY = { base: 200, cap: 2_000, denialCap: 30_000 };
/** Milliseconds since a failure without a verdict: a server that has just started denies what its roles allow. */
const STARTING_MS = 15_000;
/** After this many failures in a row the remembered version may be the cause, and the list is read again. */
const FAILURES_BEFORE_RELIST = 5;
/** Milliseconds without even a bookmark, which comes each minute: a server restored from a backup sends nothing before it reaches our version. */
const SILENT_MS = 150_000;

/** Counts failures in a row: the more of them, the longer the pause. */
export function retryPace(clock: Clock, random: () => number) {
  let failures = 0;
  let heardAt = clock.monotonic();
  /** When the server last gave no answer, or one that says that it cannot. */
  let awayAt = Number.NEGATIVE_INFINITY;
  let wasAway = false;
  return {
    /** Says that the server sent something. */
    succeeded(): void {
      failures = 0;
      heardAt = clock.monotonic();
    },
    /** True if the remembered version may be the cause. A server that keeps answering with failures may object to the version; one that was away may have gone back in time. */
    isSuspect: (thrown: unknown) =>
      clock.monotonic() - heardAt >= SILENT_MS ||
      (failures + 1 >= FAILURES_BEFORE_RELIST && !(thrown instanceof status.TransportError)),
    /** Returns the milliseconds until the next attempt, and whether the failure is routine. The pauses begin short again when a server answers again. */
    failed(thrown: unknown) {
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
      // Broken streams are routine; only repeated failures are worth a warning.
      return { pauseMs, isRoutine: failures <= 2 && !isDenied };
    },
  };
}
