/**
 * Measures for how long this process has watched each target make the same report, so that deadlines do not depend on
 * the clocks of other machines.
 */
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { MonotonicClock } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import type { Rollout, Target } from '../model/rollout.ts';
import type { ForeignWork } from '../model/snapshot.ts';

export type WatchFacts = Pick<TargetFacts, 'watchedMs' | 'followedMs'>;

/** How long one leader has watched things that belong to no single target. All times are in milliseconds. */
export interface WatchTimes {
  /** Returns the time since the first observation of the attempt, whatever step the node reports. */
  watchForeign(work: ForeignWork): number;
  /**
   * Returns for how long the plan and the policy have asked for the same payloads. Ignores the reports of nodes,
   * because a node could keep changing its report.
   */
  watchPayloads(rollout: Rollout, policy: AgentPolicy): number;
}

/** Returns how long one leader has watched a target of one plan. `now` is the monotonic time of the decision. */
export type TargetTimes = (
  target: Pick<Target, 'key' | 'state'>,
  observation: Observation,
  now: number,
) => WatchFacts;

/** Starts to watch for one term of leadership. Observations of earlier terms do not count. */
export function watchTimes(clock: MonotonicClock): WatchTimes {
  const foreign = lastWords();
  const payloads = lastWords();
  return {
    watchForeign: ({ role, name, attempt }) =>
      foreign(`${role}/${name}`, attempt, clock.monotonic()),
    watchPayloads({ source, stages }, policy) {
      const asked = stages.map((stage) => [stage.version, stage.payloads]);
      return payloads(source.uid, JSON.stringify([asked, policy]), clock.monotonic());
    },
  };
}

/** Starts to watch the targets of one plan. Each plan has its own times, because another plan may list the same node. */
export function targetTimes(): TargetTimes {
  const reports = lastWords();
  const attempts = lastWords();
  return ({ key, state }, observation, now) => {
    const attempt = observation.kind === 'none' ? '' : observation.attempt;
    const followedMs = attempts(key, `${state} ${attempt}`, now);
    // `followedMs` is the time for which this attempt has been in the state `intended`. It is 0 in every other state.
    return {
      watchedMs: reports(key, reportOf(observation), now),
      followedMs: state === 'intended' ? followedMs : 0,
    };
  };
}

/**
 * Returns a function that measures for how many milliseconds the text of a key has not changed. `now` is monotonic
 * time.
 */
function lastWords() {
  const last = new Map<string, { readonly words: string; readonly at: number }>();
  return (key: string, words: string, now: number): number => {
    const known = last.get(key);
    if (known?.words === words) return now - known.at;
    last.set(key, { words, at: now });
    return 0;
  };
}

const reportOf = onceForEach((observation: Observation): string => {
  if (observation.kind === 'none') return '';
  // For a success, only the attempt is compared, because a node may report another time for the same success.
  if (observation.kind === 'succeeded') return [observation.kind, observation.attempt].join(' ');
  const step = observation.kind === 'working' ? observation.step : '';
  return [observation.kind, observation.attempt, observation.since, step].join(' ');
});
