/** Which fields of a policy have an effect on Plans of Rancher. */
import type { PolicyEffects, SelfDrain } from '../../cli/contract/policy-effects.ts';

export const policyEffects: PolicyEffects = {
  retry: {
    hasEffect: false,
    instead:
      'In plans of cattle, the backoffLimit of the Job counts (SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT)',
  },
  keepPrevious: { hasEffect: false, instead: undefined },
};

export const selfDrain: SelfDrain = {
  drainer: 'a Job of a Rancher Plan that drains its node',
  node: 'a node that the Job of a Rancher Plan drains',
  when: 'These Jobs drain their nodes by default; the leader drains instead if the controller runs with SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB=false',
  unread: ['pods', 'order', 'waitForJobs', 'loadBalancers', 'volumes', 'evictionRequests'],
};
