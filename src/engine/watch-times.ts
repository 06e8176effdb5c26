/** Owns how long this process has seen each target say the same, so that nobody is judged by another machine's clock. */
import type { Clock } from '../util/clock.ts';
import type { Observation } from './model.ts';

interface Seen {
  readonly observation: Observation;
  readonly words: string;
  /** Milliseconds by the steady clock. */
  readonly at: number;
}

export class WatchTimes {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By key of the target. */
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Milliseconds by the steady clock. */
  watchedMs(key: string, observation: Observation): number {
    const now = this.#clock.monotonic();
    const known = this.#seen.get(key);
    if (known?.observation === observation) return now - known.at;
    const words = wordsOf(observation);
    const at = known?.words === words ? known.at : now;
    this.#seen.set(key, { observation, words, at });
    return now - at;
  }
}

function wordsOf(observation: Observation): string {
  if (observation.kind === 'none') return '';
  const step = observation.kind === 'working' ? observation.step : '';
  return [observation.kind, observation.attempt, observation.since, step].join(' ');
}
