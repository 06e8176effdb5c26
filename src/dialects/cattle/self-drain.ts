/** Which Jobs of Rancher's Plans drain their nodes themselves, and which fields of a policy they then ignore. */
import type { SelfDrain } from '../../cli/contract/self-drain.ts';

export const selfDrain: SelfDrain = {
  drainer: 'a Job of a Rancher Plan that drains its node',
  node: 'a node that the Job of a Rancher Plan drains',
  when: 'These Jobs drain their nodes by default; the leader drains instead if the controller runs with SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB=false',
  unread: [
    'pods',
    'order',
    'waitForJobs',
    'loadBalancers',
    'volumes',
    'evictionRequests',
    'zeroDisruptionBudgets',
  ],
};
