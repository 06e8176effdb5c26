/**
 * Defines what nearly every part of a process needs: a clock, a source of random numbers, and a
 * log. Tests pass their own.
 */
import { type Clock, systemClock } from './clock.ts';
import { type Logger, silentLogger } from './log.ts';

/** The tools of a part that needs no random numbers. */
export interface BasicTools {
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Tools extends BasicTools {
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
}

export const DEFAULT_TOOLS: Tools = { clock: systemClock, random: Math.random, log: silentLogger };
