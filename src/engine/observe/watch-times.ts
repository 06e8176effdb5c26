/** How long this process has watched each target report the same, so that deadlines do not depend on other clocks. */
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { Clock } from '../../util/clock.ts';
import type { ForeignWork, Observation, TargetFacts } from '../model/decision.ts';
import type { RecordedState, Rollout, Target } from '../model/rollout.ts';

export type WatchFacts = Pick<TargetFacts, 'watchedMs' | 'followedMs'>;

interface Watched {
  readonly state: RecordedState;
  readonly observation: Observation;
  /** What the target reports, as text to compare. */
  readonly report: string;
  /** Milliseconds by the steady clock. */
  readonly at: number;
  /** The same for the first observation of its attempt in this recorded state. */
  readonly firstAt: number;
}

/** For one term of leadership: earlier observations have not been watched since. */
export class WatchTimes {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #watched = new Map<string, Watched>();
  /** What was said last about each key, and since when. */
  readonly #said = new Map<string, { readonly words: string; readonly at: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Milliseconds since the first observation of the attempt, whatever step the node reports. */
  watchForeign({ role, name, attempt }: ForeignWork): number {
    return this.#since(`foreign ${role}/${name}`, attempt);
  }

  /** Since when plan and policy ask for these payloads. What nodes say does not count: one could say something new for ever. */
  watchPayloads({ source, stages }: Rollout, policy: AgentPolicy): number {
    const payloads = stages.map((stage) => [stage.version, stage.payloads]);
    return this.#since(`payloads ${source.uid}`, JSON.stringify([payloads, policy]));
  }

  #since(key: string, words: string): number {
    const now = this.#clock.monotonic();
    const known = this.#said.get(key);
    const said = known?.words === words ? known : { words, at: now };
    this.#said.set(key, said);
    return now - said.at;
  }

  /** `now`: the steady time of the decision. */
  watch(target: Pick<Target, 'key' | 'state'>, observation: Observation, now = this.#clock.monotonic()): WatchFacts {
    const known = this.#watched.get(target.key);
    const isSame = known?.observation === observation && known.state === target.state;
    const { at, firstAt } = isSame ? known : this.#update(target, observation, known, now);
    // Time before the attempt does not count.
    return { watchedMs: now - at, followedMs: target.state === 'intended' ? now - firstAt : 0 };
  }

  #update(
    { key, state }: Pick<Target, 'key' | 'state'>,
    observation: Observation,
    known: Watched | undefined,
    now: number,
  ): Watched {
    const report = reportOf(observation);
    const at = known?.report === report ? known.at : now;
    const isFollowed = known?.state === state && attemptOf(known.observation) === attemptOf(observation);
    const watched = { state, observation, report, at, firstAt: isFollowed ? known.firstAt : now };
    this.#watched.set(key, watched);
    return watched;
  }
}

function attemptOf(observation: Observation): string {
  return observation.kind === 'none' ? '' : observation.attempt;
}

function reportOf(observation: Observation): string {
  if (observation.kind === 'none') return '';
  // A success is not a new one because the node gives it another time.
  if (observation.kind === 'succeeded') return [observation.kind, observation.attempt].join(' ');
  const step = observation.kind === 'working' ? observation.step : '';
  return [observation.kind, observation.attempt, observation.since, step].join(' ');
}
