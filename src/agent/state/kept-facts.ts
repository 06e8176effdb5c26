/** Reads what an agent announces about the binary that it keeps. */
import type { KeptFacts } from '../../signal/agent-presence.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import type { Logger } from '../../util/log.ts';
import type { KeptBinary } from './kept-binary.ts';

/** Between upgrades the facts change only after days, and the agent asks after each change of its object. */
const KEPT_FACTS_MS = 55_000;

interface KeptFactsParts {
  readonly kept?: Pick<KeptBinary, 'tend' | 'facts' | 'changes'> | undefined;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * Returns a function that tends the kept binary and returns what to announce about it. The function never rejects. It reads the
 * host again after a minute, and at once after an upgrade has kept another binary.
 */
export function factsOfKept({ kept, clock, log }: KeptFactsParts) {
  let last:
    | {
        readonly at: number;
        readonly changes: number | undefined;
        readonly facts: KeptFacts | undefined;
      }
    | undefined;
  return async (): Promise<KeptFacts | undefined> => {
    const at = clock.monotonic();
    const isFresh = last !== undefined && at - last.at < KEPT_FACTS_MS;
    if (last !== undefined && isFresh && last.changes === kept?.changes()) return last.facts;
    await kept
      ?.tend()
      .catch((error: unknown) =>
        log.warn('cannot remove the kept binary', { reason: messageOf(error) }),
      );
    // The number is read first: if the record changes meanwhile, the next call reads the facts again.
    const changes = kept?.changes();
    last = { at, changes, facts: await kept?.facts() };
    return last.facts;
  };
}
