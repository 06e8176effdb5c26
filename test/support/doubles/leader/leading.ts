/** What a process does while it leads, beside what it does for itself: plans, and the cordons of all nodes. */
import { nodes } from '../../../../src/kube/resources.ts';
import { controlNodes } from '../../../../src/signal/names.ts';
import { cordonControllers, leaderActs } from '../agent/cordon-phases.ts';
import type { DrainLimits } from '../agent/kubectl-drain.ts';
import type { Controller } from '../runtime/manager.ts';
import type { LeaderParts } from './parts.ts';
import { planControllers } from './plan-controllers.ts';

export interface LeadingParts extends LeaderParts {
  readonly limits: DrainLimits;
  readonly abort: AbortSignal;
  /** Name of the object that stands for the process itself, where there is one. */
  readonly own?: string | undefined;
}

/** Older releases leave cordons to every node: their leader has only plans. */
export function leadingControllers(parts: LeadingParts): Controller[] {
  const plans = planControllers(parts);
  if (!parts.quirks.centralCordoning) return plans;
  const cordons = { ...parts, owns: () => true, acts: leaderActs(parts.client, parts.own) };
  return [
    ...plans,
    ...cordonControllers(cordons, controlNodes),
    ...cordonControllers(cordons, nodes),
  ];
}
