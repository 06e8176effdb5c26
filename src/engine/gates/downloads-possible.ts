/**
 * Gate: before the first target starts, agents check the downloads of the plan: each file must be reachable, must not be too big,
 * and must fit on the disk. After some minutes the gate passes in any case.
 */
import { formatDuration } from '../../util/duration.ts';
import { counted, listedSentences } from '../../util/phrases.ts';
import { type Gate, PASS, wait } from './types.ts';

/**
 * Milliseconds that the gate waits for answers, counted from the time at which plan and policy first ask for these
 * payloads. An agent that is down never answers.
 */
const PATIENCE_MS = 10_000;
/**
 * Milliseconds for which a reported problem delays the plan unless its policy says otherwise, so that people can fix it.
 * After this time the nodes start nevertheless, and each node succeeds or fails by itself.
 */
const DELAY_MS = 300_000;

export const downloadsPossible: Gate = {
  name: 'downloads-possible',
  ofRollout: true,
  evaluate({ checked, policy, term: { payloadsWatchedMs } }) {
    const texts = checked.flatMap(({ target, downloads: { answer, problem } }) =>
      answer === 'impossible' ? [`${target.name} cannot download ${problem}`] : [],
    );
    const { downloadProblemMs = DELAY_MS } = policy;
    const delayMs = downloadProblemMs - (payloadsWatchedMs ?? 0);
    if (texts.length > 0 && delayMs > 0) {
      const until = formatDuration(downloadProblemMs);
      const ends = `every agent that was asked can download the files; after ${until} (payloads.problemTimeout of an UpgradePolicy), the nodes start anyway. Fix the server, the network path to it, or the plan; agents check again every minute`;
      return wait('DownloadImpossible', listedSentences(texts), ends, { recheckMs: delayMs });
    }
    const silent = checked.filter(
      ({ downloads: { answer } }) => answer === 'asked' || answer === 'unasked',
    );
    // Read-only commands do not wait for answers, because these commands watch nothing.
    const leftMs = PATIENCE_MS - (payloadsWatchedMs ?? PATIENCE_MS);
    if (silent.length === 0 || leftMs <= 0) return PASS;
    const message = `${counted(silent.length, 'agent')} did not say yet whether the files of the plan can be downloaded`;
    const more = { recheckMs: leftMs, isPassing: true } as const;
    return wait('DownloadsUnchecked', message, 'the agents have answered, or after 10 s', more);
  },
};
