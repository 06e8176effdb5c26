/** A clause that says when a node fails whose agent reports to the leader. */
export const AGENT_LIMIT = 'its --target-deadline has passed since the signal';
