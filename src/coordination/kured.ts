/** Detects the work of Kured, which reboots one node after the other. */
import type { Tool } from './tool.ts';

/** Kured sets this annotation on a Node before its reboot, and removes it after, if it runs with `--annotate-nodes`. */
const REBOOTING = 'weave.works/kured-reboot-in-progress';

export const kured: Tool = {
  name: 'Kured',
  title: 'Kured',
  workOn({ metadata: { annotations = {} } }) {
    if (annotations[REBOOTING] === undefined) return undefined;
    return {
      message: `Kured is rebooting the node (annotation ${REBOOTING})`,
      ends: `Kured has rebooted the node and removes the annotation ${REBOOTING}`,
    };
  },
};
