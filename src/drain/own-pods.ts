/** Recognizes the pods of Refit's own controllers, which no drain of Refit evicts. */
import type { Pod } from '../kube/resources.ts';

/**
 * The original system-upgrade-controller sets this label on its pods: the drain of every Plan of upgrade.cattle.io
 * leaves out pods that have it.
 */
export const CONTROLLER_LABEL = 'upgrade.cattle.io/controller';
const NAME_LABEL = 'app.kubernetes.io/name';

/**
 * Returns true for pods of Refit's controller. They tolerate a cordoned node: if one were evicted, it could come back
 * to its node at once, and a drain would not end. Their own budget could also block that drain, because both replicas
 * may run on one node.
 */
export function isOwnPod({ metadata: { labels = {} } }: Pod): boolean {
  return labels[NAME_LABEL] === 'refit' && Object.hasOwn(labels, CONTROLLER_LABEL);
}

/** The label that names the hook which the pod of a Job carries out, and the annotation with the Node that the hook is for. */
export const HOOK_LABEL = 'upgrade.refit.dev/hook';
export const HOOK_NODE_ANNOTATION = 'upgrade.refit.dev/hook-node';

/**
 * Returns true for the pod of a hook that runs after the drain on the drained node itself. A new leader drains the node again, and must
 * not end the hook.
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
