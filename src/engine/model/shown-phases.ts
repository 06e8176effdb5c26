/** The phases of plans and targets that people see. */
import type { Reason } from './reasons.ts';
import { type RecordedState, ROLLOUT_PHASES } from './rollout.ts';

/**
 * The phase of a plan that people see. An ended plan may have a phase that is not recorded, because something has
 * changed since the end. edited: the plan was edited and no longer describes the work that was carried out · differs: a
 * target that is done runs an older version · empty: the plan had no target.
 */
export const PLAN_PHASES = [...ROLLOUT_PHASES, 'edited', 'differs', 'empty'] as const;
export type PlanPhase = (typeof PLAN_PHASES)[number];

/** Returns true if the plan may still start targets. */
export function isOpenPlan({ phase }: { readonly phase: PlanPhase | undefined }): boolean {
  return phase === 'new' || phase === 'running';
}

/** Returns true if the leader will refuse the new plan. `cause` is the reason of its phase, if there is one. */
export function isRefusedPlan(
  { phase }: { readonly phase: PlanPhase },
  cause: Pick<Reason, 'code'> | string | undefined,
): boolean {
  return phase === 'new' && cause !== undefined;
}

/** The phase of a target that people see, computed from the recorded state and the observation. */
export type TargetPhase = RecordedState | 'signalled' | 'working' | 'verifying';

const IN_PROGRESS: ReadonlySet<TargetPhase> = new Set<TargetPhase>([
  'intended',
  'signalled',
  'working',
  'verifying',
]);

/** Returns true if an attempt on the target has begun and has not ended. */
export function isInProgress({ phase }: { readonly phase: TargetPhase }): boolean {
  return IN_PROGRESS.has(phase);
}
