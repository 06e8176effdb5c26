/**
 * Defines what nearly every part of a process needs: a clock, a source of random numbers, and a
 * log. Tests pass their own.
 */
import { type Clock, systemClock } from './clock.ts';
import { type Logger, silentLogger } from './log.ts';

export interface Tools {
  readonly clock: Clock;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

export const DEFAULT_TOOLS: Tools = { clock: systemClock, random: Math.random, log: silentLogger };
