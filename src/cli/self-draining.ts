/**
 * Defines texts that say in which cases the leader does not drain the nodes of a dialect. Several warnings about
 * policies use these texts.
 */

export const SELF_DRAINING = {
  autopilot:
    'A k0s node drains itself in two cases: the leader is a k0s before 1.35, or the agent has no right to label the Lease of the node',
  cattle:
    'These Jobs drain their nodes by default; the leader drains instead if the controller runs with SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB=false',
} as const;
