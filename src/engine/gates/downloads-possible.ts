/** Gate: before the first target starts, agents try the downloads of the plan: reachable, not too big, and room for them. It holds for a time only. */
import { counted, listedSentences } from '../../util/phrases.ts';
import type { CheckedTarget } from './checked-targets.ts';
import { type Gate, PASS, wait } from './types.ts';

/** Milliseconds for which this leader waits for answers: an agent may be down. */
const PATIENCE_MS = 10_000;
/** Milliseconds for which a problem holds the plan, so that people can mend it. Then nodes find out, and fail or not. */
const HOLD_MS = 300_000;
const MOST_SHOWN = 5;

export const downloadsPossible: Gate = {
  name: 'downloads-possible',
  ofRollout: true,
  evaluate({ checked }) {
    const problems = checked.flatMap(({ target, facts: { downloads, watchedMs = 0 } }) =>
      typeof downloads === 'object' && watchedMs < HOLD_MS
        ? [{ heldMs: HOLD_MS - watchedMs, text: `${target.name} cannot download ${downloads.problem}` }]
        : [],
    );
    if (problems.length > 0) {
      const texts = problems.map(({ text }) => text);
      const ends =
        'every node that was asked can download it, or after 5 min, when nodes try it: mend the server, the way to it or the plan; agents ask again every minute';
      const recheckMs = Math.max(...problems.map(({ heldMs }) => heldMs));
      return wait('DownloadImpossible', listedSentences(texts, MOST_SHOWN), ends, { recheckMs });
    }
    const left = checked.map(leftMs).filter((ms) => ms > 0);
    if (left.length === 0) return PASS;
    const message = `${counted(left.length, 'agent')} did not say yet whether it can be downloaded`;
    const more = { recheckMs: Math.max(...left), isPassing: true } as const;
    return wait('DownloadsUnchecked', message, 'they have answered, or after 10 s', more);
  },
};

/** Milliseconds for which its answer is waited for. Read-only commands do not wait. */
function leftMs({ facts: { downloads, watchedMs = PATIENCE_MS } }: CheckedTarget): number {
  return downloads === 'asked' || downloads === 'unasked' ? PATIENCE_MS - watchedMs : 0;
}
