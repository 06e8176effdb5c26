/** What the gate `payload-present` and the requests for downloads share: the name of the gate, and its pause. */

export const PAYLOAD_PRESENT = 'payload-present';

/** Milliseconds after a failed download before the target is asked again. */
const PAUSE_AFTER_FAILURE_MS = 60_000;

/** Returns the milliseconds until a target may be asked again, after a download that failed at `since`, in RFC 3339. */
export function pauseAfter(since: string, now: number): number {
  const leftMs = Date.parse(since) + PAUSE_AFTER_FAILURE_MS - now;
  // The time may be unreadable, or in the future because of another clock.
  return Number.isNaN(leftMs) ? 0 : Math.min(Math.max(0, leftMs), PAUSE_AFTER_FAILURE_MS);
}
