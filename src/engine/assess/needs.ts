/**
 * Decides what an assessment needs that no watch shows: the probes whose answers it lacks, and the time at which the
 * plan must be assessed again.
 */
import { onceForEach } from '../../util/memo.ts';
import { type DecisionContext, factsOf, type Waiting } from '../gates/types.ts';
import type { Probe } from '../model/decision.ts';
import { inState, isFinal, type Target } from '../model/rollout.ts';
import { awaitedRetries } from '../schedule/awaited-retries.ts';
import { failedInFlightIn } from '../schedule/slots.ts';
import type { Assessment } from './assess.ts';
import { waitBeforeAdmission } from './before-admission.ts';
import { timeLeft } from './target-deadlines.ts';
import { isHeldByFailures, unstartedTargets } from './unstarted.ts';

export interface Needs {
  /** The probes whose answers the assessment needs but does not have. Each probe is listed once. */
  readonly probes: readonly Probe[];
  /**
   * Milliseconds after which the plan must be assessed again even if no watched object changes; undefined if only a
   * change of a watched object matters.
   */
  readonly recheckAfterMs: number | undefined;
}

/** What one wait needs. A wait that only a watch can end needs nothing. */
type Need = Pick<Waiting, 'probe' | 'recheckMs'>;

/** Returns the needs of an assessment. They are computed once, because several parts of a turn ask for them. */
export const needsOf = onceForEach((assessment: Assessment): Needs => {
  const needs = all(assessment);
  const soonest = Math.min(...needs.flatMap(({ recheckMs }) => recheckMs ?? []));
  return {
    probes: distinct(needs.flatMap(({ probe }) => probe ?? [])),
    recheckAfterMs: Number.isFinite(soonest) ? soonest : undefined,
  };
});

function all(assessment: Assessment): readonly Need[] {
  const { rollout } = assessment.snapshot;
  if (isFinal(rollout)) return [];
  const first = waitBeforeAdmission(assessment.snapshot);
  if (first) return [first];
  return [
    ...ofTargetsInProgress(assessment),
    ...ofRetries(assessment),
    ...unstartedTargets(assessment).waiting,
    ...ofQueue(assessment),
  ];
}

function ofTargetsInProgress(assessment: Assessment): Need[] {
  const { stage, now } = assessment;
  if (!stage) return [];
  return inState(stage, 'intended').flatMap((target) => {
    const deadline = deadlineOf(assessment, target);
    // A deadline that has passed without an effect needs no recheck.
    const isAhead = deadline !== undefined && deadline > now;
    const { probe, recheckMs } = assessment.of(stage, target);
    return [{ probe, recheckMs }, ...(isAhead ? [{ recheckMs: deadline - now }] : [])];
  });
}

/**
 * Returns the deadline of a target in progress, in milliseconds since the Unix epoch; undefined if it has none. It has
 * none before it was signalled.
 */
export function deadlineOf(
  { snapshot, policy, now }: DecisionContext,
  target: Target,
): number | undefined {
  const facts = factsOf(snapshot, target);
  if (facts.observation.kind === 'none') return undefined;
  const deadline = now + timeLeft(target, facts, policy, now);
  return Number.isFinite(deadline) ? deadline : undefined;
}

function ofRetries({ snapshot, policy, now }: Assessment): Need[] {
  return awaitedRetries(snapshot, policy).flatMap(({ dueMs, isOrdered }) =>
    isOrdered ? [] : { recheckMs: Math.max(0, dueMs - now) },
  );
}

/** Returns when failed targets that still work free their slots, as far as targets wait for these slots. */
function ofQueue(assessment: Assessment): Need[] {
  const { stage, snapshot, policy, now } = assessment;
  if (!stage || unstartedTargets(assessment).queued.length === 0) return [];
  if (isHeldByFailures(stage, policy)) return [];
  return failedInFlightIn(snapshot, now).map(({ leftMs }) => ({ recheckMs: leftMs }));
}

function distinct(probes: readonly Probe[]): Probe[] {
  return [...new Map(probes.map((probe) => [questionOf(probe), probe])).values()];
}

function questionOf(probe: Probe): string {
  switch (probe.kind) {
    case 'drain-preview':
      return `${probe.kind} ${probe.node}`;
    case 'drain-delegation':
      return `${probe.kind} ${probe.target.key}`;
    case 'control-plane':
    case 'preconditions':
    case 'decisions':
      return probe.kind;
  }
}
