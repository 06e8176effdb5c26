/**
 * Gate: some targets must have their payload before their node is cordoned, so that no node is unavailable while it
 * downloads. A target whose download fails never starts, and is asked again after a pause.
 */
import { PAYLOAD_PRESENT, pauseAfter } from './payload-pause.ts';
import { type Gate, PASS, wait } from './types.ts';

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
