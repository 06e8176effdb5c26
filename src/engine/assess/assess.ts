/**
 * Assesses a snapshot. Commands and explanations are derived from the assessment, and each part of
 * it is computed once.
 */
import type { DecisionContext } from '../gates/types.ts';
import { activeStage, type Stage, type Target } from '../model/rollout.ts';
import type { TargetPhase } from '../model/shown-phases.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { awaitedRetries } from '../schedule/awaited-retries.ts';
import { openSlots } from '../schedule/slots.ts';
import { isOverBudget, isStopping, withBudgetOf } from './budget.ts';
import { evaluateTarget, isAtRest } from './evaluate-target.ts';
import type { TargetEvaluation } from './evaluation.ts';

export interface Assessment extends DecisionContext {
  /** The stage whose targets may start or progress; undefined when every stage has ended. */
  readonly stage: Stage | undefined;
  /** True if failures stop the rollout: they use up the failure budget, or one of them always stops it. */
  readonly isOverBudget: boolean;
  /** True if nothing new may start: the rollout is aborted, its failure budget is used up, or the plan is now invalid. */
  readonly isStopping: boolean;
  /** The number of further targets of `stage` that may start. */
  readonly openSlots: number;
  /** Returns the evaluation of a target of the stage. Each target is evaluated at most once in an assessment. */
  of(stage: Stage, target: Target): TargetEvaluation;
}

/** Returns the assessment at `now`, in milliseconds since the Unix epoch. The same input always gives the same assessment. */
export function assess(snapshot: Snapshot, given: RolloutPolicy, now: number): Assessment {
  const policy = withBudgetOf(snapshot.rollout, given);
  const overBudget = isOverBudget(snapshot, policy);
  const context = { snapshot, policy, now, isStopping: isStopping(snapshot, policy, overBudget) };
  const stage = openStage(snapshot, policy);
  const evaluated = new Map<Target, TargetEvaluation>();
  return {
    ...context,
    stage,
    isOverBudget: overBudget,
    openSlots: stage ? openSlots(context, stage) : 0,
    of: (ofStage, target) =>
      evaluated.getOrInsertComputed(target, () =>
        evaluateTarget({ ...context, stage: ofStage, target }),
      ),
  };
}

/**
 * Returns the stage whose targets may start or progress. If a target of a stage is retried, the stage has not ended, so
 * no later stage begins.
 */
function openStage(snapshot: Snapshot, policy: RolloutPolicy): Stage | undefined {
  const { rollout } = snapshot;
  const retried = new Set(awaitedRetries(snapshot, policy).map(({ stage }) => stage.id));
  const active = activeStage(rollout);
  return rollout.stages.find(({ id }) => id === active?.id || retried.has(id));
}

/** Returns the phase of the target, as users see it. */
export function phaseOf(assessment: Assessment, stage: Stage, target: Target): TargetPhase {
  return isAtRest(assessment.snapshot, target) ? target.state : assessment.of(stage, target).phase;
}
