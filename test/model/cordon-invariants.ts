/** Invariants of cordons, pods, and the end of every run. */
import { cordonOwner, pendingOwner } from '../../src/drain/cordon-marks.ts';
import { isInMotion } from './host.ts';
import {
  isAtRest,
  isClosed,
  isLost,
  isSwapping,
  isTheirs,
  runsAnother,
} from './node-predicates.ts';
import type { StatedInvariant } from './stated-invariant.ts';

export const ABOUT_CORDONS: readonly StatedInvariant[] = [
  {
    name: 'emptied-before-swap',
    sentence:
      'If the service of a Node runs another file than the file at the path of the binary, the Node has no pods that a drain evicts. This is true while a signal is open and its agent has not given up.',
    upheldBy:
      '`src/engine/assess/choose-drain-action.ts`: the order is cordon, drain, acknowledgement; `src/agent/steps/update-steps.ts`: the agent does not swap before the acknowledgement',
    holds: ({ nodes }) =>
      nodes.every((node) => !node.host.hasPods || !runsAnother(node.host) || !isSwapping(node)),
  },
  {
    name: 'closed-while-swapped',
    sentence:
      'If the service of a Node runs another file than the file at the path of the binary, the Node is cordoned. This is true while a signal is open and its agent has not given up.',
    upheldBy:
      '`src/engine/assess/choose-drain-action.ts`, `src/agent/steps/update-steps.ts`: the cordon comes before the swap, and the uncordon comes after the proof; `src/engine/turn/choose-node-actions.ts`: Refit never uncordons a node at work',
    holds: ({ nodes }) =>
      nodes
        .filter(({ spec, host }) => spec.role === 'worker' && runsAnother(host))
        .every((node) => isClosed(node.object) || !isSwapping(node)),
  },
  {
    name: 'closed-by-others',
    sentence: 'A Node that somebody else cordoned stays cordoned.',
    upheldBy:
      '`src/drain/cordon-marks.ts`: each cordon of Refit names its owner, and Refit removes no other cordon',
    holds: ({ nodes }) => nodes.every(({ keptClosed, object }) => !keptClosed || isClosed(object)),
  },
  {
    name: 'no-cordon-left',
    sentence:
      "At the end of a run, no Node has a cordon, a mark or a taint of Refit. Exception: k0s's own agent has restarted a service that reports another version than planned (the dead end of k0s).",
    upheldBy:
      '`src/engine/turn/choose-node-actions.ts`: Refit cleans up after each settled target; `src/agent/steps/update-steps.ts`: the agent uncordons before it reports a failure',
    atRest: true,
    holds: ({ nodes }) =>
      nodes.every(
        (node) =>
          isTheirs(node) ||
          (cordonOwner(node.object) === undefined && pendingOwner(node.object) === undefined),
      ),
  },
  {
    name: 'nothing-half-done',
    sentence:
      'At the end of a run, every signal has ended, and every node runs the file at the path of the binary. This is also true if the run failed. Exceptions: nodes without power, nodes whose agent reported that it could not restore the old file, and the dead end of k0s.',
    upheldBy:
      '`src/engine/turn/choose-node-actions.ts`: Refit cancels signals while this is possible; `src/agent/steps/update-steps.ts`: the agent finishes what it has begun',
    atRest: true,
    holds: ({ nodes }) =>
      nodes.every(
        (node) =>
          node.host.dark ||
          isTheirs(node) ||
          (isAtRest(node) && (!isInMotion(node.host) || isLost(node))),
      ),
  },
];
