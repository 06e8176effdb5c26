/** Which nodes of k0s drain themselves, and which fields of a policy they then ignore. */
import type { SelfDrain } from '../../cli/contract/self-drain.ts';

const NODE = 'a k0s node that drains itself';

export const selfDrain: SelfDrain = {
  drainer: NODE,
  node: NODE,
  when: 'A k0s node drains itself in two cases: the leader is a k0s before 1.35, or the agent has no right to label the Lease of the node',
  unread: ['pods', 'order', 'waitForJobs', 'volumes', 'evictionRequests'],
};
