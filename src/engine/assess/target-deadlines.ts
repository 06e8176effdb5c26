/** Says when a target is late: the deadlines of its steps and of its whole attempt, and how long a leader has watched it. */
import { answerOf } from '../model/asked.ts';
import type { Observation, TargetFacts } from '../model/facts.ts';
import type { Target } from '../model/rollout.ts';
import type { RolloutPolicy, TimedStep } from '../policy/rollout-policy.ts';

/**
 * A leader must watch a target for this number of milliseconds before the recorded time counts. This gives nodes time
 * to report after the leader was absent or the clock was changed.
 */
const GRACE_MS = 60_000;

/**
 * Returns true if the target has missed a deadline. Only a leader can decide that, because read-only commands do not watch. Each
 * leader counts from the start of its own term.
 */
export function isLate(
  target: Target,
  facts: TargetFacts,
  policy: RolloutPolicy,
  now: number,
): boolean {
  return facts.watchedMs !== undefined && timeLeft(target, facts, policy, now) <= 0;
}

/**
 * Returns the number of milliseconds until the target misses a deadline; Infinity if the target has no deadline. For a
 * leader, only the time counts in which it has watched the target.
 */
export function timeLeft(
  target: Target,
  facts: TargetFacts,
  policy: RolloutPolicy,
  now: number,
): number {
  const { targetDeadlineMs } = policy;
  const { watchedMs, followedMs = watchedMs } = facts;
  const recorded = Date.parse(target.since) + targetDeadlineMs - now;
  if (watchedMs === undefined || followedMs === undefined) return recorded;
  const hasOwn = stepOf(facts.observation) !== undefined;
  const step = hasOwn
    ? stepDeadlineMs(facts, policy) - watchedMs
    : Math.max(recorded, GRACE_MS - watchedMs);
  return Math.min(targetDeadlineMs - followedMs, step);
}

/**
 * Returns the deadline of the step according to the clock of the node, in milliseconds since the Unix epoch. Read-only
 * commands use it. Returns Infinity if the step has no deadline; never returns NaN. A retry keeps a report of success
 * that is older than the retry, so the step begins at the retry at the earliest.
 */
export function stepEnd(target: Target, facts: TargetFacts, policy: RolloutPolicy): number {
  const { observation } = facts;
  const reported = observation.kind === 'none' ? Number.NaN : Date.parse(observation.since);
  const { limitMs = Number.POSITIVE_INFINITY } = observation.kind === 'working' ? observation : {};
  return Number.isNaN(reported)
    ? Number.POSITIVE_INFINITY
    : Math.max(reported, Date.parse(target.since)) +
        Math.min(limitMs, stepDeadlineMs(facts, policy));
}

function stepDeadlineMs(
  { observation, drainDelegation }: TargetFacts,
  { stepDeadlines, settleMs = 0 }: RolloutPolicy,
): number {
  const step = stepOf(observation);
  // While a node settles, a short outage of an API server or of the node is not a failure. So the time to settle is
  // added to the deadline.
  if (step === 'ready') return stepDeadlines.ready + settleMs;
  // The deadline `drain` applies here only if the node drains itself. If the leader drains the node,
  // choose-drain-action.ts applies the deadline instead.
  const isOwn = step === 'drain' && answerOf(drainDelegation) !== false;
  return step === undefined || isOwn ? Number.POSITIVE_INFINITY : stepDeadlines[step];
}

function stepOf(observation: Observation): TimedStep | undefined {
  if (observation.kind === 'sent') return 'answer';
  if (observation.kind === 'working') return observation.part;
  return observation.kind === 'succeeded' ? 'ready' : undefined;
}
