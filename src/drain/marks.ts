/** Owns the names of what Refit leaves on a Node while it works: whose cordon it is, and that its turn is still to come. */

/** Names the rollout that cordoned the node; a cordon without it is somebody else's and stays. */
export const CORDON_ANNOTATION = 'upgrade.refit.dev/cordoned-by';

/** A soft taint on nodes that are still to be done, so that evicted pods go where they need not leave again; its value names the rollout. */
export const PENDING_TAINT = { key: 'upgrade.refit.dev/pending', effect: 'PreferNoSchedule' } as const;
