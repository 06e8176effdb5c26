/**
 * Chooses the hook runs that are due. A run is due if the plan waits for it, or if a target with a recorded intent
 * waits for it.
 */
import type { HookRun } from '../../hooks/rules.ts';
import { isOfPlan } from '../../hooks/rules.ts';
import { choose } from '../assess/advance.ts';
import type { Assessment } from '../assess/assess.ts';
import { hookRunOf, planHookRuns } from '../gates/hook-runs.ts';
import { isRunBegun } from '../gates/types.ts';
import { inState, isFinal, type Rollout, type Stage, targetsIn } from '../model/rollout.ts';
import { dueAfterPlan } from './hooks-after-plan.ts';

/** The due runs, and the names of all runs whose results are needed. */
export interface HooksCommand {
  readonly kind: 'hooks';
  readonly due: readonly HookRun[];
  readonly kept: readonly string[];
  /** The names of the targets that have ended after they were started. Failures of their hooks are still shown. */
  readonly settled: readonly string[];
}

/**
 * Returns the command that carries out the due runs; empty if the policy has no hooks, or if a part of the record
 * cannot be read. `kept` names the other runs of the plan and the runs of targets in progress. Their results are kept,
 * because gates need them.
 */
export function hooksOf(assessment: Assessment): HooksCommand[] {
  const { snapshot, policy, stage } = assessment;
  const { hooks = [] } = policy;
  if (hooks.length === 0 || snapshot.rollout.unread) return [];
  const settled = settledNames(snapshot.rollout);
  const ofPlan = planHookRuns(snapshot, policy, 'beforePlan', 'afterPlan').map(({ id }) => id);
  if (!stage || isFinal(snapshot.rollout))
    return [{ kind: 'hooks', due: dueAfterPlan(assessment), kept: ofPlan, settled }];
  const intended = inState(stage, 'intended');
  const due = intended.flatMap((target): HookRun[] => {
    const { hookRun, next } = assessment.of(stage, target);
    return hookRun && next === undefined ? [hookRun] : [];
  });
  const kept = intended.flatMap((target) =>
    hooks
      .filter(({ when }) => !isOfPlan(when))
      .map((hook) => hookRunOf({ snapshot, stage, target }, hook).id),
  );
  const first = dueBeforePlan(assessment, stage);
  return [{ kind: 'hooks', due: [...first, ...due], kept: [...ofPlan, ...kept], settled }];
}

/**
 * Returns the hook run for which the first targets wait. The run is due only if every other gate lets one of these
 * targets start.
 */
function dueBeforePlan(assessment: Assessment, stage: Stage): HookRun[] {
  const { snapshot, policy } = assessment;
  if (planHookRuns(snapshot, policy, 'beforePlan').length === 0 || isRunBegun(snapshot)) return [];
  return choose(assessment, stage).waiting.flatMap(({ hookRun }) => hookRun ?? []);
}

/** Returns the names of the targets that have ended after they were started. Their hooks may have failed. */
export function settledNames(rollout: Rollout): string[] {
  return targetsIn(rollout, 'failed', 'done').map(({ name }) => name);
}
