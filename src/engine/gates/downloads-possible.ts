/** Gate: before the first target starts, agents try the downloads of the plan: reachable, not too big, and room for them. It holds for a time only. */
import { counted, listedSentences } from '../../util/phrases.ts';
import { type Gate, PASS, wait } from './types.ts';

/** Milliseconds for which this leader waits for answers, from when plan and policy ask for these payloads: an agent may be down. */
const PATIENCE_MS = 10_000;
/** Milliseconds for which a problem holds the plan, so that people can fix it. Then nodes find out, and fail or not. */
const HOLD_MS = 300_000;

export const downloadsPossible: Gate = {
  name: 'downloads-possible',
  ofRollout: true,
  evaluate({ checked, payloadsWatchedMs }) {
    const texts = checked.flatMap(({ target, downloads: { answer, problem } }) =>
      answer === 'impossible' ? [`${target.name} cannot download ${problem}`] : [],
    );
    const heldMs = HOLD_MS - (payloadsWatchedMs ?? 0);
    if (texts.length > 0 && heldMs > 0) {
      const ends =
        'every node that was asked can download it, or after 5 min, when nodes try it: fix the server, the way to it or the plan; agents ask again every minute';
      return wait('DownloadImpossible', listedSentences(texts), ends, { recheckMs: heldMs });
    }
    const silent = checked.filter(
      ({ downloads: { answer } }) => answer === 'asked' || answer === 'unasked',
    );
    // Read-only commands do not wait.
    const leftMs = PATIENCE_MS - (payloadsWatchedMs ?? PATIENCE_MS);
    if (silent.length === 0 || leftMs <= 0) return PASS;
    const message = `${counted(silent.length, 'agent')} did not say yet whether it can be downloaded`;
    const more = { recheckMs: leftMs, isPassing: true } as const;
    return wait('DownloadsUnchecked', message, 'they have answered, or after 10 s', more);
  },
};
