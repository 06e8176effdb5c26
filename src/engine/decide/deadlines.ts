/** When a target is late: by the recorded time of its attempt, and by the time that this process has watched it. */
import type { Observation, TargetFacts } from '../model/observed.ts';
import type { Target } from '../model/recorded.ts';
import type { RolloutPolicy, TimedStep } from '../policy/rollout-policy.ts';

/** Milliseconds to watch a target before its recorded time counts: after an absence or a clock jump, nodes get time to report. */
const GRACE_MS = 60_000;

/** Only a leader, which watches, can call a target late. Each term counts from its own start. */
export function isLate(target: Target, facts: TargetFacts, policy: RolloutPolicy, now: number): boolean {
  return facts.watchedMs !== undefined && timeLeft(target, facts, policy, now) <= 0;
}

/**
 * Milliseconds until the target is late; Infinity if never. Deadlines count only the time that this leader has watched: one
 * for the whole attempt, one for the current step.
 */
export function timeLeft(target: Target, facts: TargetFacts, policy: RolloutPolicy, now: number): number {
  const { targetDeadlineMs } = policy;
  const { watchedMs, followedMs = watchedMs } = facts;
  const recorded = Date.parse(target.since) + targetDeadlineMs - now;
  if (watchedMs === undefined || followedMs === undefined) return recorded;
  const hasOwn = stepOf(facts.observation) !== undefined;
  const step = hasOwn ? stepDeadlineMs(facts, policy) - watchedMs : Math.max(recorded, GRACE_MS - watchedMs);
  return Math.min(targetDeadlineMs - followedMs, step);
}

/** The deadline of the step by the node's own clock, for read-only commands, in ms since the epoch. Infinity if none; never NaN. */
export function stepEnd(facts: TargetFacts, policy: RolloutPolicy): number {
  const { observation } = facts;
  const since = observation.kind === 'none' ? Number.NaN : Date.parse(observation.since);
  return Number.isNaN(since) ? Number.POSITIVE_INFINITY : since + stepDeadlineMs(facts, policy);
}

function stepDeadlineMs({ observation, drainDelegation }: TargetFacts, { stepDeadlines }: RolloutPolicy): number {
  const step = stepOf(observation);
  // A drain by the leader has its deadline in cordon-and-drain.ts.
  const isOwn = step === 'drain' && drainDelegation !== false;
  return step === undefined || isOwn ? Number.POSITIVE_INFINITY : stepDeadlines[step];
}

function stepOf(observation: Observation): TimedStep | undefined {
  if (observation.kind === 'sent') return 'answer';
  if (observation.kind === 'working') return observation.part;
  return observation.kind === 'succeeded' ? 'ready' : undefined;
}
