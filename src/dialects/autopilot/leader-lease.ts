/** Names the Lease of `refit controller`. */
import type { LeaseName } from '../../cli/contract/session-dialect.ts';

/**
 * The Lease that the leader of k0s itself also uses. So the leader of k0s and the leader of Refit never act at the same
 * time.
 */
export const LEADER_LEASE = {
  namespace: 'k0s-autopilot',
  name: 'k0s-autopilot-controller',
} as const satisfies LeaseName;
