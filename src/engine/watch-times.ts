/** Owns how long this process has seen each target say the same, so that nobody is judged by another machine's clock. */
import type { Clock } from '../util/clock.ts';
import type { Observation } from './model.ts';

export class WatchTimes {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By key of the target. */
  readonly #seen = new Map<string, { readonly words: string; readonly at: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Milliseconds by the steady clock. */
  watchedMs(key: string, observation: Observation): number {
    const words = wordsOf(observation);
    const now = this.#clock.monotonic();
    const known = this.#seen.get(key);
    if (known?.words === words) return now - known.at;
    this.#seen.set(key, { words, at: now });
    return 0;
  }
}

function wordsOf(observation: Observation): string {
  if (observation.kind === 'none') return '';
  const step = observation.kind === 'working' ? observation.step : '';
  return [observation.kind, observation.attempt, observation.since, step].join(' ');
}
