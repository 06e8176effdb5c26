/** Recognizes the pods of Refit's own controllers, which no drain of Refit evicts. */
import type { Pod } from '../kube/resources.ts';

/** The original's label for its pods: the drain of every Plan of upgrade.cattle.io leaves out pods that have it. */
export const CONTROLLER_LABEL = 'upgrade.cattle.io/controller';
const NAME_LABEL = 'app.kubernetes.io/name';

/**
 * They tolerate a cordoned node, so an evicted one could come back to its node at once, and a drain would not end.
 * Their own budget could hold that drain up, too: both replicas may run on one node.
 */
export function isOwnPod({ metadata: { labels = {} } }: Pod): boolean {
  return labels[NAME_LABEL] === 'refit' && Object.hasOwn(labels, CONTROLLER_LABEL);
}
