/** Gate: of all nodes of the cluster only so many may be unavailable at a time, whatever made them so. */

import { because } from '../model/reasons.ts';
import type { Target } from '../model/recorded.ts';
import type { NodeCensus } from '../policy/node-census.ts';
import type { NodeLimit, RolloutPolicy } from '../policy/rollout-policy.ts';
import { PASS, type Verdict } from './types.ts';

export interface AvailabilityInput {
  readonly target: Target;
  readonly policy: RolloutPolicy;
  readonly census: NodeCensus | undefined;
}

/** Names that are told one by one. */
const MAX_TOLD = 5;

export const nodesAvailable = {
  name: 'nodes-available',
  evaluate({ target, policy: { maxUnavailable, name }, census }: AvailabilityInput): Verdict {
    if (!maxUnavailable || !census) return PASS;
    const { all, unavailable, busy } = census;
    // To start one that is unavailable anyway makes no further node so; what is no node takes no pods.
    if (unavailable.has(target.name) || !all.has(target.name)) return PASS;
    const limit = limitOf(maxUnavailable, all.size);
    const count = busy.size - (busy.has(target.name) ? 1 : 0);
    if (count < limit) return PASS;
    const others = [...busy].filter((each) => each !== target.name).toSorted();
    const told = [...others.slice(0, MAX_TOLD), ...(count > MAX_TOLD ? [`${count - MAX_TOLD} more`] : [])].join(', ');
    const message = `${count} of ${all.size} nodes are not Ready, unschedulable or at work (${told}); UpgradePolicy ${name} allows ${limit}`;
    return { kind: 'wait', reason: because('TooManyUnavailable', message) };
  },
};

/** A share that comes to less than one node would let nothing start, ever. */
function limitOf(limit: NodeLimit, nodes: number): number {
  return 'nodes' in limit ? limit.nodes : Math.max(1, Math.floor((nodes * limit.percent) / 100));
}
