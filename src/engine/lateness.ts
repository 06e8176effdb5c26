/** Owns when a target counts as late: by the recorded time of its attempt, and by what this process watched itself. */
import type { Observation, Target, TargetFacts } from './model.ts';
import type { CampaignPolicy, Step } from './policy/campaign-policy.ts';

/**
 * Milliseconds that a process must have watched a target before it may call it late: a leader that was away, or whose
 * clock jumped, gives every node the time to say a word.
 */
const GRACE_MS = 60_000;

/** Milliseconds since the Unix epoch. */
export function deadlineOf(target: Target, policy: CampaignPolicy): number {
  return Date.parse(target.since) + policy.targetDeadlineMs;
}

/** Deadlines of steps are counted by the watching process alone: the clocks of the nodes may say anything. */
export function isLate(target: Target, facts: TargetFacts, policy: CampaignPolicy, now: number): boolean {
  const { watchedMs = Number.POSITIVE_INFINITY } = facts;
  if (now >= deadlineOf(target, policy)) return watchedMs >= Math.min(GRACE_MS, policy.targetDeadlineMs);
  return facts.watchedMs !== undefined && facts.watchedMs >= stepDeadlineMs(facts, policy);
}

/** Milliseconds until the target is late, where nothing changes; Infinity where it never is. */
export function timeLeft(target: Target, facts: TargetFacts, policy: CampaignPolicy, now: number): number {
  const { watchedMs } = facts;
  const whole = deadlineOf(target, policy) - now;
  if (watchedMs === undefined) return whole;
  const grace = Math.min(GRACE_MS, policy.targetDeadlineMs) - watchedMs;
  return Math.min(Math.max(whole, grace), stepDeadlineMs(facts, policy) - watchedMs);
}

/**
 * When the time of its step is over by its own word, in milliseconds since the Unix epoch, for those who only look: whoever
 * decides counts from when it saw that word. Infinity where there is no end; never NaN.
 */
export function stepEnd(facts: TargetFacts, policy: CampaignPolicy): number {
  const { observation } = facts;
  const since = observation.kind === 'none' ? Number.NaN : Date.parse(observation.since);
  return Number.isNaN(since) ? Number.POSITIVE_INFINITY : since + stepDeadlineMs(facts, policy);
}

function stepDeadlineMs({ observation, consent }: TargetFacts, { stepDeadlines }: CampaignPolicy): number {
  const step = stepOf(observation);
  // The leader keeps the deadline of its own drains, with its choice: it knows when they began.
  const isOwn = step === 'drain' && consent !== false;
  return step === undefined || isOwn ? Number.POSITIVE_INFINITY : stepDeadlines[step];
}

function stepOf(observation: Observation): Step | undefined {
  if (observation.kind === 'sent') return 'answer';
  if (observation.kind === 'working') return observation.part;
  return observation.kind === 'succeeded' ? 'ready' : undefined;
}
