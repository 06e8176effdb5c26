/** Owns when a target counts as late: by the recorded time of its attempt, and by what this process watched itself. */
import type { Observation, TargetFacts } from '../model/observed.ts';
import type { Target } from '../model/recorded.ts';
import type { RolloutPolicy, TimedStep } from '../policy/rollout-policy.ts';

/**
 * Milliseconds that a process must have watched a target at a step without deadline before it may call it late by the
 * recorded time: a leader that was away, or whose clock jumped, gives every node the time to say a word.
 */
const GRACE_MS = 60_000;

/** Only who watches may say so: whoever leads counts anew with each term, and whoever looks on knows of none. */
export function isLate(target: Target, facts: TargetFacts, policy: RolloutPolicy, now: number): boolean {
  return facts.watchedMs !== undefined && timeLeft(target, facts, policy, now) <= 0;
}

/**
 * Milliseconds until the target is late, where nothing changes; Infinity where it never is. Whoever watches counts what it
 * has watched: the whole attempt for as long as a target may take; the step for its own deadline. So after an absence of
 * the leader each step has its own time anew, and all of them no more than a new target, whatever clock wrote the record.
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

/**
 * When the time of its step is over by its own word, in milliseconds since the Unix epoch, for those who only look: whoever
 * decides counts from when it saw that word. Infinity where there is no end; never NaN.
 */
export function stepEnd(facts: TargetFacts, policy: RolloutPolicy): number {
  const { observation } = facts;
  const since = observation.kind === 'none' ? Number.NaN : Date.parse(observation.since);
  return Number.isNaN(since) ? Number.POSITIVE_INFINITY : since + stepDeadlineMs(facts, policy);
}

function stepDeadlineMs({ observation, drainDelegation }: TargetFacts, { stepDeadlines }: RolloutPolicy): number {
  const step = stepOf(observation);
  // The leader keeps the deadline of its own drains, with its choice: it knows when they began.
  const isOwn = step === 'drain' && drainDelegation !== false;
  return step === undefined || isOwn ? Number.POSITIVE_INFINITY : stepDeadlines[step];
}

function stepOf(observation: Observation): TimedStep | undefined {
  if (observation.kind === 'sent') return 'answer';
  if (observation.kind === 'working') return observation.part;
  return observation.kind === 'succeeded' ? 'ready' : undefined;
}
