/**
 * Observations of signals on nodes, for tests. By default the attempt begins, and the node answers, at the time
 * `later(0)`.
 */
import type { Observation } from '../../../src/engine/model/facts.ts';
import { later } from '../clock/times.ts';

export const NONE: Observation = { kind: 'none' };

export function sent(attempt: string = later(0)): Observation {
  return { kind: 'sent', attempt, since: attempt };
}

export function working(
  step: string,
  attempt: string = later(0),
  since: string = attempt,
): Observation {
  return { kind: 'working', step, attempt, since };
}

export function succeeded(attempt: string = later(0), since: string = attempt): Observation {
  return { kind: 'succeeded', attempt, since };
}

export function failed(
  message: string,
  attempt: string = later(0),
  since: string = attempt,
): Observation {
  return { kind: 'failed', message, attempt, since };
}
