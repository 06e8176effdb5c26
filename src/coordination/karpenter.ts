/** Detects the work of Karpenter, which replaces and deletes nodes. */
import { type Tool, taintOn } from './tool.ts';

/**
 * The taints of nodes that Karpenter disrupts. Karpenter has set the first taint since version 1.0, and older versions
 * set the second.
 */
const DISRUPTED = ['karpenter.sh/disrupted', 'karpenter.sh/disruption'];

export const karpenter: Tool = {
  name: 'Karpenter',
  title: 'Karpenter',
  group: 'karpenter.sh',
  mark: {
    key: 'karpenter.sh/do-not-disrupt',
    value: 'true',
    ownerKey: 'upgrade.refit.dev/do-not-disrupt-by',
  },
  workOn(node) {
    const taint = taintOn(node, DISRUPTED);
    if (taint === undefined) return undefined;
    return {
      message: `Karpenter is removing the node (taint ${taint})`,
      ends: `the node is gone, or Karpenter removes the taint ${taint}`,
    };
  },
};
