/**
 * Represents the work that a deleted or finished plan left on one node as a failed rollout with one target. The leader
 * ends the work of that target and cleans up its node.
 */
import { because } from '../../engine/model/reasons.ts';
import type { Rollout, Source, Stage, Target } from '../../engine/model/rollout.ts';

export function orphanedRollout(
  from: Source,
  id: string,
  target: Target,
  why: string,
  more?: Partial<Stage>,
): Rollout {
  const known = {
    id: 'left',
    command: 0,
    role: 'worker',
    maxInFlight: 1,
    version: '',
    forced: false,
  } as const;
  const stages = [{ ...known, ...more, targets: [target] }];
  return {
    source: from,
    id,
    phase: 'failed',
    blocked: false,
    reason: because('PlanGone', why),
    stages,
    problems: [],
  };
}
