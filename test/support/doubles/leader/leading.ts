/** The controllers that a process runs only while it leads: those for plans, and those that cordon all nodes. */
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
  /** The name of the object that represents the process itself, if there is one. */
  readonly own?: string | undefined;
}

/** In older releases, every node cordons itself. Their leader handles only plans. */
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
