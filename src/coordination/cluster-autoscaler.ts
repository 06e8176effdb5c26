/** Detects the work of the cluster autoscaler, which deletes nodes that are not needed. */
import { type Tool, taintOn } from './tool.ts';

/**
 * The cluster autoscaler sets this taint just before it drains and deletes the node. Its other taint,
 * `DeletionCandidateOfClusterAutoscaler`, means only that it may delete the node later.
 */
const DELETED = 'ToBeDeletedByClusterAutoscaler';

export const clusterAutoscaler: Tool = {
  name: 'ClusterAutoscaler',
  title: 'the cluster autoscaler',
  mark: {
    key: 'cluster-autoscaler.kubernetes.io/scale-down-disabled',
    value: 'true',
    ownerKey: 'upgrade.refit.dev/scale-down-disabled-by',
  },
  workOn(node) {
    if (taintOn(node, [DELETED]) === undefined) return undefined;
    return {
      message: `the cluster autoscaler is deleting the node (taint ${DELETED})`,
      ends: `the node is gone, or the cluster autoscaler removes the taint ${DELETED}`,
    };
  },
};
