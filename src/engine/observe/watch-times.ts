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
export function watchTimes(clock: Pick<Clock, 'monotonic'>) {
  const watched = new Map<string, Watched>();
  /** What was said last about each key, and since when. */
  const lastSaid = new Map<string, { readonly words: string; readonly at: number }>();
  const since = (key: string, words: string): number => {
    const now = clock.monotonic();
    const known = lastSaid.get(key);
    const said = known?.words === words ? known : { words, at: now };
    lastSaid.set(key, said);
    return now - said.at;
  };
  return {
    /** Milliseconds since the first observation of the attempt, whatever step the node reports. */
    watchForeign: ({ role, name, attempt }: ForeignWork): number => since(`foreign ${role}/${name}`, attempt),

    /** Since when plan and policy ask for these payloads. What nodes say does not count: one could say something new for ever. */
    watchPayloads({ source, stages }: Rollout, policy: AgentPolicy): number {
      const payloads = stages.map((stage) => [stage.version, stage.payloads]);
      return since(`payloads ${source.uid}`, JSON.stringify([payloads, policy]));
    },

    /** `now`: the steady time of the decision. */
    watch(target: Pick<Target, 'key' | 'state'>, observation: Observation, now = clock.monotonic()): WatchFacts {
      const { key, state } = target;
      const before = watched.get(key);
      const isSame = before?.observation === observation && before.state === state;
      const current = isSame ? before : watchedAs(before, state, observation, now);
      watched.set(key, current);
      // Time before the attempt does not count.
      return { watchedMs: now - current.at, followedMs: state === 'intended' ? now - current.firstAt : 0 };
    },
  };
}

function watchedAs(before: Watched | undefined, state: RecordedState, observation: Observation, now: number): Watched {
  const report = reportOf(observation);
  const at = before?.report === report ? before.at : now;
  const isFollowed = before?.state === state && attemptOf(before.observation) === attemptOf(observation);
  return { state, observation, report, at, firstAt: isFollowed ? before.firstAt : now };
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
