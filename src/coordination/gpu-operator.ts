/** Detects the work of the NVIDIA GPU Operator, which drains nodes to upgrade their drivers. */
import { printable } from '../util/printable.ts';
import type { Tool } from './tool.ts';

/**
 * The annotation that contains the step of the driver upgrade on the Node. It is empty or missing if no driver upgrade
 * is in progress.
 */
const STATE = 'nvidia.com/gpu-driver-upgrade-state';
const DONE = 'upgrade-done';
const FAILED = 'upgrade-failed';
/** This value means that the driver is out of date, and that nothing has been done to the node yet. */
const REQUIRED = 'upgrade-required';
/** With the value `true`, the operator never upgrades the driver of the node, so its state stays `upgrade-required`. */
const SKIP = 'nvidia.com/gpu-driver-upgrade.skip';

export const gpuOperator: Tool = {
  name: 'GPUOperator',
  title: 'the GPU Operator',
  group: 'nvidia.com',
  workOn({ metadata: { labels = {} } }) {
    const state = labels[STATE] ?? '';
    if (state === '' || state === DONE) return undefined;
    if (state === REQUIRED && labels[SKIP] === 'true') return undefined;
    const shown = `(label ${STATE}: ${printable(state)})`;
    if (state === FAILED)
      return {
        message: `the GPU Operator failed to upgrade the driver of the node ${shown}`,
        ends: `somebody repairs the driver and the label becomes ${DONE}`,
      };
    return {
      message: `the GPU Operator is upgrading the driver of the node ${shown}`,
      ends: `the label ${STATE} becomes ${DONE}`,
    };
  },
};
