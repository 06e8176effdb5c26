/**
 * Gate: some targets must have their payload before their node is cordoned, so that no node is unavailable while it
 * downloads. A target whose download fails never starts, and is asked again after a pause.
 */
import { type Gate, PASS, wait } from './types.ts';

/** Milliseconds after a failed download before the target is asked again. */
export const PAUSE_AFTER_FAILURE_MS = 60_000;

export const PAYLOAD_PRESENT = 'payload-present';

export const payloadPresent: Gate = {
  name: PAYLOAD_PRESENT,
  evaluate({ target, facts: { requiredDownload: known }, policy, now }) {
    // The intent of a target is recorded only after its download, and a later leader may not know of the download.
    const isDue = target.state === 'pending' && policy.prefetch !== 'none';
    if (!isDue || known === undefined || known.kind === 'done') return PASS;
    const problem = 'problem' in known ? known.problem : undefined;
    if (problem === undefined) {
      const message = `${target.name} downloads what the plan installs, before its node is cordoned`;
      const isAgain = known.kind === 'asked' && known.isRetry === true;
      return wait('DownloadPending', message, 'the download is complete', {
        isPassing: true,
        ...(!isAgain && { holdsSlot: true }),
      });
    }
    const message = `${target.name} cannot download what the plan installs: ${problem}`;
    const ends =
      'the download succeeds; it is repeated until then, and the node is not cordoned before. Correct the plan, or repair the server or the network path to it; with prefetch: None of an UpgradePolicy, nodes start without it';
    return wait(
      'DownloadFailed',
      message,
      ends,
      known.kind === 'failed' ? { recheckMs: pauseAfter(known.since, now) } : {},
    );
  },
};

/** Returns the milliseconds until a target may be asked again, after a download that failed at `since`, in RFC 3339. */
export function pauseAfter(since: string, now: number): number {
  const leftMs = Date.parse(since) + PAUSE_AFTER_FAILURE_MS - now;
  // The time may be unreadable, or in the future because of another clock.
  return Number.isNaN(leftMs) ? 0 : Math.min(Math.max(0, leftMs), PAUSE_AFTER_FAILURE_MS);
}
