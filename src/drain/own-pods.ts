/** Recognizes the pods of Refit's own controllers, which no drain of Refit evicts, and the pods of upgrades. */
import type { Pod } from '../kube/resources.ts';

/**
 * The original system-upgrade-controller sets this label on its pods. The drains of all Plans of upgrade.cattle.io do
 * not evict pods with this label.
 */
export const CONTROLLER_LABEL = 'upgrade.cattle.io/controller';
const NAME_LABEL = 'app.kubernetes.io/name';

/**
 * Returns true for pods of Refit's controller. These pods tolerate a cordoned node. If such a pod were evicted, its
 * replacement could be scheduled to the same node at once, and a drain would not end. The budget of these pods could
 * also block the drain, because both replicas may run on one node.
 */
export function isOwnPod({ metadata: { labels = {} } }: Pod): boolean {
  return labels[NAME_LABEL] === 'refit' && Object.hasOwn(labels, CONTROLLER_LABEL);
}

/**
 * The label on the pod of a Job names the hook that the pod runs. The annotation names the Node for which the hook
 * runs.
 */
export const HOOK_LABEL = 'upgrade.refit.dev/hook';
export const HOOK_NODE_ANNOTATION = 'upgrade.refit.dev/hook-node';

/**
 * Returns true for the pod of a hook that runs after the drain on the drained node itself. A new leader drains the node
 * again, and this drain must not evict the pod of the hook.
 */
export function isHookOfItsNode({
  metadata: { labels = {}, annotations = {} },
  spec,
}: Pod): boolean {
  const isHook = Object.hasOwn(labels, HOOK_LABEL);
  return (
    isHook && spec?.nodeName !== undefined && annotations[HOOK_NODE_ANNOTATION] === spec.nodeName
  );
}

/** The label of the Jobs that pull images, and of their pods. */
export const PULL_LABEL = 'refit.upgrade.cattle.io/image-pull';

/**
 * Returns true for a pod that carries out a part of an upgrade: the Job of a Plan, of a hook, or of an image pull. Such
 * a pod is made for its node, and ends without a drain.
 */
export function isPodOfUpgrade({ metadata: { labels = {} } }: Pod): boolean {
  return [CONTROLLER_LABEL, HOOK_LABEL, PULL_LABEL].some((label) => Object.hasOwn(labels, label));
}
