/** What nearly every part of a process needs: the time, chance, and a log. Tests bring their own. */
import { type Clock, systemClock } from './clock.ts';
import { type Logger, silentLogger } from './log.ts';

export interface Tools {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

export const DEFAULT_TOOLS: Tools = { clock: systemClock, random: Math.random, log: silentLogger };
