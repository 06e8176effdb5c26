/** Gate: limits how many nodes of the cluster are unavailable at once, for any reason. */
import { listed } from '../../util/phrases.ts';
import type { AwaitedPlan } from '../model/awaited-plan.ts';
import type { PlanFacts } from '../model/snapshot.ts';
import {
  type GateInput,
  nodeNameOf,
  nodesAllowedAway,
  PASS,
  type Verdict,
  wait,
  waitForNodes,
} from './types.ts';

interface Input extends Pick<GateInput, 'target' | 'facts' | 'policy' | 'census'> {
  readonly plan: Pick<PlanFacts, 'awaits'>;
}

/** The wait ends only if a person acts, if the plan that it waits for does not exist. */
function untilOver(name: string, { plan, ends, fault }: AwaitedPlan): Verdict {
  const early = `${name} would count against maxUnavailable while it waits for ${plan}`;
  return fault === undefined
    ? wait('ForeignWork', early, ends)
    : wait('ForeignWork', `${early}, ${fault.why}`, `${ends}: ${fault.remedy}`);
}

export const nodesAvailable = {
  name: 'nodes-available',
  evaluate({ target, facts, policy, census, plan: { awaits } }: Input): Verdict {
    const { maxUnavailable, name } = policy;
    if (!maxUnavailable || !census) return PASS;
    if (awaits !== undefined) return untilOver(target.name, awaits);
    const node = nodeNameOf(target, facts);
    const { all, unavailable, busy } = census;
    // A target whose node is already unavailable does not raise the count. A target that is not a Node makes no Node
    // unavailable.
    if (unavailable.has(node) || !all.has(node)) return PASS;
    const limit = nodesAllowedAway(maxUnavailable, all.size);
    const count = busy.size - (busy.has(node) ? 1 : 0);
    if (count < limit) return PASS;
    const others = [...busy].filter((each) => each !== node).toSorted();
    const message = `${count} of ${all.size} nodes ${count === 1 ? 'is' : 'are'} not Ready, unschedulable or at work (${listed(others)}); UpgradePolicy ${name} allows ${limit}`;
    return waitForNodes('TooManyUnavailable', message, census, {
      counted: others,
      limit: 'maxUnavailable',
    });
  },
};
