/** Gate: what people ordered, or wrote into a policy that nobody can read, holds everything back. */
import { because } from '../reasons.ts';
import { type Gate, PASS } from './types.ts';

export const notHeld: Gate = {
  name: 'not-held',
  ofCampaign: true,
  evaluate({ orders, policy }) {
    const [problem] = policy.problems;
    if (problem) return { kind: 'wait', reason: because('PolicyUnreadable', problem.message) };
    if (orders.paused)
      return { kind: 'wait', reason: because('Paused', 'the plan is paused: refit resume lets it go on') };
    if (!policy.paused) return PASS;
    return { kind: 'wait', reason: because('Paused', `UpgradePolicy ${policy.name ?? ''} says paused`) };
  },
};
