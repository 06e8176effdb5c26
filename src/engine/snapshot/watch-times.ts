/** How long this process has watched each target report the same, so that deadlines do not depend on other clocks. */
import type { AgentPolicy } from '../../signal/annotations.ts';
import type { Clock } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import type { ForeignWork, Observation, TargetFacts } from '../model/decision.ts';
import type { Rollout, Target } from '../model/rollout.ts';

export type WatchFacts = Pick<TargetFacts, 'watchedMs' | 'followedMs'>;

/** For one term of leadership: earlier observations have not been watched since. */
export function watchTimes(clock: Pick<Clock, 'monotonic'>) {
  const foreign = lastWords();
  const payloads = lastWords();
  return {
    /** Milliseconds since the first observation of the attempt, whatever step the node reports. */
    watchForeign: ({ role, name, attempt }: ForeignWork): number =>
      foreign(`${role}/${name}`, attempt, clock.monotonic()),
    /** Since when plan and policy ask for these payloads. What nodes say does not count: one could say something new for ever. */
    watchPayloads({ source, stages }: Rollout, policy: AgentPolicy): number {
      const asked = stages.map((stage) => [stage.version, stage.payloads]);
      return payloads(source.uid, JSON.stringify([asked, policy]), clock.monotonic());
    },
  };
}

/** For the targets of one plan: another may list the same node. `now`: the steady time of the decision. */
export function targetTimes() {
  const reports = lastWords();
  const attempts = lastWords();
  return (
    { key, state }: Pick<Target, 'key' | 'state'>,
    observation: Observation,
    now: number,
  ): WatchFacts => {
    const attempt = observation.kind === 'none' ? '' : observation.attempt;
    const followedMs = attempts(key, `${state} ${attempt}`, now);
    // Time before the attempt does not count.
    return {
      watchedMs: reports(key, reportOf(observation), now),
      followedMs: state === 'intended' ? followedMs : 0,
    };
  };
}

/** Milliseconds for which nothing but these words was said about a key; `now` by the steady clock. */
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
  // A success is not a new one because the node gives it another time.
  if (observation.kind === 'succeeded') return [observation.kind, observation.attempt].join(' ');
  const step = observation.kind === 'working' ? observation.step : '';
  return [observation.kind, observation.attempt, observation.since, step].join(' ');
});
