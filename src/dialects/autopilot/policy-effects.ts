/** Which fields of a policy have an effect on Plans of k0s. */
import type { FieldEffect, PolicyEffects, SelfDrain } from '../../cli/contract/policy-effects.ts';

const ON_PLANS: FieldEffect = { hasEffect: true, on: 'k0s Plans' };

export const policyEffects: PolicyEffects = { retry: ON_PLANS, keepPrevious: ON_PLANS };

const NODE = 'a k0s node that drains itself';

export const selfDrain: SelfDrain = {
  drainer: NODE,
  node: NODE,
  when: 'A k0s node drains itself in two cases: the leader is a k0s before 1.35, or the agent has no right to label the Lease of the node',
  unread: ['pods', 'order', 'waitForJobs', 'volumes', 'evictionRequests'],
};
