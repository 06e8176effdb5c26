/**
 * Chooses the hook run that is due after a plan. The end of the plan is recorded already and does not change, so only
 * the Job of the hook shows that the hook has run. The Job exists for a day after its end. Therefore a leader looks for
 * the Job only within a shorter time.
 */
import type { HookRun } from '../../hooks/rules.ts';
import type { Assessment } from '../assess/assess.ts';
import { lastEndOf, timeIn } from '../assess/ended.ts';
import { planHookRuns } from '../gates/hook-runs.ts';
import { hooksMs } from '../policy/rollout-policy.ts';

const HOUR_MS = 60 * 60 * 1000;
/**
 * The milliseconds after the end of a plan in which a leader must observe this end to start the hooks after the plan.
 * The maximum duration of the hooks is added to this time.
 */
const NOTICED_MS = HOUR_MS;
/**
 * The most milliseconds after the end of a plan in which the leader looks for the hook runs. This is less than the day
 * for which a finished Job is kept.
 */
const LONGEST_MS = 23 * HOUR_MS;

/** Returns the hook run that is due; empty unless the plan ended as done a short time ago and has at least one target. */
export function dueAfterPlan({
  snapshot,
  policy,
  now,
}: Pick<Assessment, 'snapshot' | 'policy' | 'now'>): HookRun[] {
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  const { hooks = [] } = snapshot.outside;
  if (rollout.phase !== 'done') return [];
  const runs = planHookRuns(snapshot, policy, 'afterPlan');
  if (runs.length === 0) return [];
  if (rollout.stages.every(({ targets }) => targets.length === 0)) return [];
  const ended = Math.max(lastEndOf(snapshot), timeIn(controls.hooksRetried ?? ''));
  const allowedMs = Math.min(LONGEST_MS, NOTICED_MS + hooksMs(policy, 'afterPlan'));
  for (const run of runs) {
    const state = hooks.find(({ id }) => id === run.id)?.state;
    // If this leader has begun a run, the run stays due until it ends.
    if (state === 'running') return [run];
    if (state === undefined) return now - ended < allowedMs ? [run] : [];
    if (state === 'failed' && run.hook.ignoresFailure !== true) return [];
  }
  return [];
}
