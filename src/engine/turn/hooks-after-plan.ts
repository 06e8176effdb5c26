/**
 * Chooses the run of a hook that is due after a plan. The end of the plan is recorded already and does not change. Only the Job of the
 * hook shows that the hook has run, and no other record does. The Job exists for a day after its end, so a leader looks for it only
 * within a shorter time.
 */
import type { HookRun } from '../../hooks/rules.ts';
import type { Assessment } from '../assess/assess.ts';
import { lastEndOf, timeIn } from '../assess/ended.ts';
import { planHookRuns } from '../gates/hook-runs.ts';
import { hooksMs } from '../policy/rollout-policy.ts';

const HOUR_MS = 60 * 60 * 1000;
/**
 * Milliseconds after the end of a plan within which a leader must see this end to start the hooks after the plan. The time that the hooks
 * may take is added.
 */
const NOTICED_MS = HOUR_MS;
/**
 * The most milliseconds after the end of a plan in which its hooks are looked for. This is less than the day for which a finished Job is
 * kept.
 */
const LONGEST_MS = 23 * HOUR_MS;

/** Returns the run of the hook that is due. Returns none unless the plan has just ended as done with at least one target. */
export function dueAfterPlan({
  snapshot,
  policy,
  now,
}: Pick<Assessment, 'snapshot' | 'policy' | 'now'>): HookRun[] {
  const { rollout, controls, hooks = [] } = snapshot;
  if (rollout.phase !== 'done') return [];
  const runs = planHookRuns(snapshot, policy, 'afterPlan');
  if (runs.length === 0) return [];
  if (rollout.stages.every(({ targets }) => targets.length === 0)) return [];
  const ended = Math.max(lastEndOf(snapshot), timeIn(controls.hooksRetried ?? ''));
  const allowedMs = Math.min(LONGEST_MS, NOTICED_MS + hooksMs(policy, 'afterPlan'));
  for (const run of runs) {
    const state = hooks.find(({ id }) => id === run.id)?.state;
    // A run that this leader has begun is followed to its end.
    if (state === 'running') return [run];
    if (state === undefined) return now - ended < allowedMs ? [run] : [];
    if (state === 'failed' && run.hook.ignoresFailure !== true) return [];
  }
  return [];
}
