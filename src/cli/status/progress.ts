/** How far a plan is, and how long the rest will take if nothing holds it. */
import { isMoving, isRoutine, targetsOf } from './sentences.ts';
import type { PlanView, StageView } from './view.ts';

export function percentOf(plan: PlanView): number {
  const targets = targetsOf(plan);
  if (targets.length === 0) return 0;
  return Math.floor((100 * targets.filter(({ phase }) => phase === 'done').length) / targets.length);
}

/** Milliseconds; undefined before the first node is done, and while something holds the plan. */
export function remainingOf(plan: PlanView): number | undefined {
  const { phase, paused, waits, stages } = plan;
  if (phase !== 'running' || paused !== undefined || !waits.every(isRoutine)) return undefined;
  const each = typicalTime(plan);
  return each === undefined ? undefined : each * stages.reduce((rounds, stage) => rounds + roundsOf(stage), 0);
}

/** The median of what finished nodes took, as their agents report it. */
function typicalTime(plan: PlanView): number | undefined {
  const times = targetsOf(plan)
    .filter(({ phase }) => phase === 'done')
    .map(({ spent = {} }) => Object.values(spent).reduce((sum, ms) => sum + ms, 0))
    .filter((ms) => ms > 0)
    .toSorted((a, b) => a - b);
  return times[Math.floor(times.length / 2)];
}

function roundsOf({ targets, maxInFlight }: StageView): number {
  const open = targets.filter((target) => target.phase === 'pending' || isMoving(target)).length;
  return Math.ceil(open / Math.max(1, maxInFlight));
}
