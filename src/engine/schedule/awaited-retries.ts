/**
 * Decides which failed targets Refit tries again without a request by a person, and when. One write records the numbers
 * of the attempts on the plan together with the order to retry. Therefore a crash cannot repeat an attempt, and every
 * attempt is counted.
 */
import { rfc3339 } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import { ownMember } from '../../util/own-member.ts';
import { factsOf } from '../gates/types.ts';
import { because, isMissedDeadline, type Reason } from '../model/reasons.ts';
import {
  inState,
  isUpgradedByLaterStage,
  type Rollout,
  type Stage,
  type Target,
  withStages,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RetryRule, RolloutPolicy } from '../policy/rollout-policy.ts';

/** The longest pause between two attempts, in milliseconds. Each attempt doubles the pause up to this limit. */
const LONGEST_PAUSE_MS = 24 * 60 * 60 * 1000;
/** The most targets whose attempts are counted, because the annotation of a plan has little room. */
const MOST_COUNTED = 500;

/** A failed target that is tried again. */
export interface AwaitedRetry {
  readonly stage: Stage;
  readonly target: Target;
  /** The number of the next attempt. The first attempt of a target has the number 1. */
  readonly attempt: number;
  /** The number of attempts that the policy allows. */
  readonly of: number;
  /** The time at which the next attempt is due, in milliseconds since the Unix epoch. */
  readonly dueMs: number;
  /**
   * True once the next attempt is ordered. The ordered attempt begins when the work of the previous attempt has ended.
   */
  readonly isOrdered: boolean;
}

/** Returns the failed targets with attempts left; empty if the policy has no `retry`, or the dialect does not support it. */
export function awaitedRetries(
  snapshot: Snapshot,
  { retry }: Pick<RolloutPolicy, 'retry'>,
): readonly AwaitedRetry[] {
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  const { canRetry, leavesLate } = snapshot.abilities;
  const isOpen = rollout.phase === 'running' && controls.abort === undefined;
  const all = retry !== undefined && canRetry && isOpen ? awaited(snapshot)(retry) : [];
  return leavesLate ? all.filter(({ target }) => !isLate(rollout, target)) : all;
}

/**
 * Returns true if the target missed the deadline of the whole target. The reason of a rollout with one target is the
 * reason of this target.
 */
function isLate({ reason }: Rollout, { failure = reason }: Target): boolean {
  return failure !== undefined && isMissedDeadline(failure);
}

/** The list is made once for each snapshot, because every candidate of a decision asks for it. */
const awaited = onceForEach((snapshot: Snapshot) =>
  onceForEach((rule: RetryRule) =>
    snapshot.rollout.stages.flatMap((stage) =>
      inState(stage, 'failed').flatMap(
        (target) => awaitedRetry(snapshot, rule, stage, target) ?? [],
      ),
    ),
  ),
);

/** Returns the next attempt of a failed target; undefined if the target has no attempt left, or cannot be tried again. */
function awaitedRetry(
  snapshot: Snapshot,
  rule: RetryRule,
  stage: Stage,
  target: Target,
): AwaitedRetry | undefined {
  if (stage.failedHoldSlots === true) return undefined;
  if (!factsOf(snapshot, target).exists) return undefined;
  if (isUpgradedByLaterStage(snapshot.rollout, stage, target)) return undefined;
  const counts = attemptsOf(snapshot);
  const known = ownMember(counts, target.key);
  const begun = known ?? 1;
  const failedMs = Date.parse(target.since);
  const orderedMs = snapshot.plan.controls.retries.get(target.name);
  const of = rule.attempts;
  if (orderedMs !== undefined && orderedMs >= failedMs)
    return { stage, target, attempt: begun, of, dueMs: orderedMs, isOrdered: true };
  const hasRoom = known !== undefined || Object.keys(counts).length < MOST_COUNTED;
  if (begun >= of || !hasRoom || Number.isNaN(failedMs)) return undefined;
  const pauseMs = Math.min(LONGEST_PAUSE_MS, rule.backoffMs * 2 ** (begun - 1));
  return { stage, target, attempt: begun + 1, of, dueMs: failedMs + pauseMs, isOrdered: false };
}

/**
 * Returns the identity of a run. The recorded counts of attempts contain this identity, so that a copied plan and a new
 * run start with empty counts.
 */
export function retriedRunOf({ source, id }: Pick<Rollout, 'source' | 'id'>): string {
  return `${source.uid}/${id}`;
}

/**
 * Returns the number of the last attempt of each target, by key of the target. A target without an entry has had at
 * most one attempt.
 */
export function attemptsOf({
  rollout,
  plan: {
    controls: { attempts },
  },
}: Pick<Snapshot, 'rollout' | 'plan'>): Readonly<Record<string, number>> {
  return attempts?.run === retriedRunOf(rollout) ? attempts.counts : {};
}

/** An order to retry targets, with the values that the leader writes to the plan. */
export interface RetryOrder {
  readonly retries: readonly AwaitedRetry[];
  /** The time of the order for each target, in RFC 3339, by name of the target. */
  readonly moments: ReadonlyMap<string, string>;
  /** The number of the last attempt of each target that is not done, by key of the target. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Returns the order for the attempts that are due; undefined if no attempt is due. */
export function dueRetries(
  snapshot: Snapshot,
  policy: Pick<RolloutPolicy, 'retry'>,
  now: number,
): RetryOrder | undefined {
  const retries = awaitedRetries(snapshot, policy).filter(
    ({ isOrdered, dueMs }) => !isOrdered && dueMs <= now,
  );
  if (retries.length === 0) return undefined;
  const moments = new Map(
    retries.map(({ target }) => [target.name, rfc3339(orderTime(snapshot, target, now))]),
  );
  const open = new Set(
    withStages(snapshot.rollout).flatMap(({ target }) =>
      target.state === 'done' ? [] : target.key,
    ),
  );
  const before = Object.entries(attemptsOf(snapshot)).filter(([key]) => open.has(key));
  const next = retries.map(({ target, attempt }) => [target.key, attempt] as const);
  return { retries, moments, counts: Object.fromEntries([...before, ...next]) };
}

/**
 * Returns the time of the order. This time is never earlier than the failed attempt, even if the clock of this leader
 * is slow.
 */
function orderTime(snapshot: Snapshot, target: Target, now: number): number {
  const { observation } = factsOf(snapshot, target);
  const attempt = observation.kind === 'failed' ? Date.parse(observation.attempt) : Number.NaN;
  const moments = [now, Date.parse(target.since), attempt];
  return Math.max(...moments.filter((moment) => !Number.isNaN(moment)));
}

/**
 * Returns the retries for which the whole rollout waits. If a failure stops the rollout immediately (`isStopped`), the
 * rollout waits for all retries. Otherwise it waits only for the retries of controllers, because the loss of another
 * controller could cost the quorum.
 */
export function holdingRetries(
  snapshot: Snapshot,
  policy: Pick<RolloutPolicy, 'retry'>,
  isStopped: boolean,
): readonly AwaitedRetry[] {
  return awaitedRetries(snapshot, policy).filter(
    ({ stage }) => isStopped || stage.role === 'controller',
  );
}

/** Returns the reason for a target that waits for its next attempt. */
export function retryReason({ target, attempt, of, dueMs, isOrdered }: AwaitedRetry): Reason {
  const when = isOrdered ? 'when the work of the failed attempt has ended' : `at ${rfc3339(dueMs)}`;
  return because('RetryWaits', `${target.name} failed: attempt ${attempt} of ${of} ${when}`);
}
