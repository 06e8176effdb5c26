/** Owns how long this process has seen each target say the same, so that nobody is judged by another machine's clock. */
import type { Clock } from '../../util/clock.ts';
import type { Observation, TargetFacts } from '../model/observed.ts';
import type { RecordedState, Target } from '../model/recorded.ts';

export type WatchFacts = Pick<TargetFacts, 'watchedMs' | 'followedMs'>;

interface Seen {
  readonly state: RecordedState;
  readonly observation: Observation;
  readonly words: string;
  /** Milliseconds by the steady clock. */
  readonly at: number;
  /** The same for the first sight of its attempt as one that is recorded. */
  readonly firstAt: number;
}

/** Of one term: what was seen in an earlier one has not been watched since. */
export class WatchTimes {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By key of the target. */
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  watch(target: Pick<Target, 'key' | 'state'>, observation: Observation): WatchFacts {
    const now = this.#clock.monotonic();
    const known = this.#seen.get(target.key);
    const isSame = known?.observation === observation && known.state === target.state;
    const { at, firstAt } = isSame ? known : this.#see(target, observation, known, now);
    // How long it said so before it had its turn, or before it is tried again, says nothing of its attempt.
    return { watchedMs: now - at, followedMs: target.state === 'intended' ? now - firstAt : 0 };
  }

  #see(
    { key, state }: Pick<Target, 'key' | 'state'>,
    observation: Observation,
    known: Seen | undefined,
    now: number,
  ): Seen {
    const words = wordsOf(observation);
    const at = known?.words === words ? known.at : now;
    const isFollowed = known?.state === state && attemptOf(known.observation) === attemptOf(observation);
    const seen = { state, observation, words, at, firstAt: isFollowed ? known.firstAt : now };
    this.#seen.set(key, seen);
    return seen;
  }
}

function attemptOf(observation: Observation): string {
  return observation.kind === 'none' ? '' : observation.attempt;
}

function wordsOf(observation: Observation): string {
  if (observation.kind === 'none') return '';
  const step = observation.kind === 'working' ? observation.step : '';
  return [observation.kind, observation.attempt, observation.since, step].join(' ');
}
