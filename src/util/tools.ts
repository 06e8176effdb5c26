/** What nearly every part of a process needs: the time, chance, and a log. Tests bring their own. */
import type { Clock } from './clock.ts';
import type { Logger } from './log.ts';

export interface Tools {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}
