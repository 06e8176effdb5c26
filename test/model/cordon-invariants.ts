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
      'While a signal is open and its agent has not given up, a Node whose service runs another file than the one at the path has no pods that a drain evicts.',
    upheldBy:
      '`src/engine/assess/choose-drain-action.ts`: cordon, then drain, then acknowledge; `src/agent/steps/update-steps.ts`: no swap before that',
    holds: ({ nodes }) =>
      nodes.every((node) => !node.host.hasPods || !runsAnother(node.host) || !isSwapping(node)),
  },
  {
    name: 'closed-while-swapped',
    sentence:
      'While a signal is open and its agent has not given up, a Node whose service runs another file than the one at the path is cordoned.',
    upheldBy:
      '`src/engine/assess/choose-drain-action.ts`, `src/agent/steps/update-steps.ts`: cordon before the swap, uncordon after the proof; `src/engine/turn/choose-node-actions.ts`: never uncordons a node at work',
    holds: ({ nodes }) =>
      nodes
        .filter(({ spec, host }) => spec.role === 'worker' && runsAnother(host))
        .every((node) => isClosed(node.object) || !isSwapping(node)),
  },
  {
    name: 'closed-by-others',
    sentence: 'A Node that somebody else cordoned stays cordoned.',
    upheldBy:
      '`src/drain/cordon-marks.ts`: our cordons name their owner, and no other cordon is removed',
    holds: ({ nodes }) => nodes.every(({ keptClosed, object }) => !keptClosed || isClosed(object)),
  },
  {
    name: 'no-cordon-left',
    sentence:
      "At the end of a run no Node has a cordon, a mark or a taint of ours. Exception: k0s's dead end, where its own agent has restarted a version that names itself otherwise.",
    upheldBy:
      '`src/engine/turn/choose-node-actions.ts`: cleans up after each settled target; `src/agent/steps/update-steps.ts`: uncordons before it reports a failure',
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
      "At the end of a run, however it ended, every signal is over, and every node runs the file at its path. Exceptions: nodes without power, nodes whose agent reported that it could not put the old file back, and k0s's dead end.",
    upheldBy:
      '`src/engine/turn/choose-node-actions.ts`: cancels signals while that is possible; `src/agent/steps/update-steps.ts`: finishes what it has begun',
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
