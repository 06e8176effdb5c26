/** Shares the time for previews among users: a preview needs time of the process that also carries out plans. */
import { type Clock, sleep } from '../../util/clock.ts';
import { semaphore } from '../../util/waits.ts';
import type { ActionResult } from '../dashboard/state.ts';

/** The maximum number of previews at the same time, for all users together. */
const AT_ONCE = 1;
/** After a preview, the next one of the same user waits this many times as long as the preview took. */
const SHARE = 3;
const LONGEST_PAUSE_MS = 10_000;
/** The maximum number of users whose last preview is known. */
const MOST_USERS = 1024;

const BUSY: ActionResult = {
  isDone: false,
  lines: ['Your last preview has not ended yet: wait until it has ended, and try again.'],
};

/** Makes a preview for a user when it is the turn of this user. */
export type PreviewTurns = (
  user: string,
  work: () => Promise<ActionResult>,
) => Promise<ActionResult>;

/**
 * Each user may have one preview that runs or waits, whatever the number of tokens of this user. So a user who asks for many previews
 * delays another user by one preview at most.
 */
export function createPreviewTurns(clock: Clock): PreviewTurns {
  const previewing = semaphore(AT_ONCE);
  const busy = new Set<string>();
  const freeAt = new Map<string, number>();
  return async (user, work) => {
    if (busy.has(user)) return BUSY;
    busy.add(user);
    try {
      const pause = (freeAt.get(user) ?? 0) - clock.monotonic();
      if (pause > 0) await sleep(clock, pause);
      return await previewing(async () => {
        const began = clock.monotonic();
        try {
          return await work();
        } finally {
          const now = clock.monotonic();
          freeAt.delete(user);
          freeAt.set(user, now + Math.min(LONGEST_PAUSE_MS, SHARE * (now - began)));
          const [oldest] = freeAt.keys();
          if (freeAt.size > MOST_USERS && oldest !== undefined) freeAt.delete(oldest);
        }
      });
    } finally {
      busy.delete(user);
    }
  };
}
