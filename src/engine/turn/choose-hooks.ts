/** Chooses the runs of hooks that are due: those that targets with a recorded intent wait for. */
import type { HookRun } from '../../hooks/rules.ts';
import type { Assessment } from '../assess/assess.ts';
import { hookRunOf } from '../gates/hook-runs.ts';
import { inState, isFinal, type Rollout, targetsIn } from '../model/rollout.ts';

/** The due runs, and the names of all runs whose results are needed. */
export interface HooksCommand {
  readonly kind: 'hooks';
  readonly due: readonly HookRun[];
  readonly kept: readonly string[];
  /** The names of targets whose failed hooks are still shown. */
  readonly settled: readonly string[];
}

/**
 * Returns the command that carries out the due runs; none if the policy has no hooks, and while a part of the record cannot be
 * read. What is known of the other runs of targets in progress is kept, because their gates need it.
 */
export function hooksOf(assessment: Assessment): HooksCommand[] {
  const { snapshot, policy, stage } = assessment;
  const { hooks = [] } = policy;
  if (hooks.length === 0 || snapshot.rollout.unread) return [];
  const settled = settledNames(snapshot.rollout);
  if (!stage || isFinal(snapshot.rollout)) return [{ kind: 'hooks', due: [], kept: [], settled }];
  const intended = inState(stage, 'intended');
  const due = intended.flatMap((target): HookRun[] => {
    const { hookRun, next } = assessment.of(stage, target);
    return hookRun && next === undefined ? [hookRun] : [];
  });
  const kept = intended.flatMap((target) =>
    hooks.map((hook) => hookRunOf({ snapshot, stage, target }, hook).id),
  );
  return [{ kind: 'hooks', due, kept, settled }];
}

/** Returns the names of the targets that have ended after they were started. Their hooks may have failed. */
export function settledNames(rollout: Rollout): string[] {
  return targetsIn(rollout, 'failed', 'done').map(({ name }) => name);
}
