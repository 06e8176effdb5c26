/** Owns what must hold of cordons, of pods, and of the end of every run. */
import { cordonOwner, pendingOwner } from '../../src/drain/cordon.ts';
import { isInMotion } from './host.ts';
import { isAtRest, isClosed, isLost, isSwapping, runsAnother } from './node-predicates.ts';
import type { StatedInvariant } from './stated-invariant.ts';

export const ABOUT_CORDONS: readonly StatedInvariant[] = [
  {
    name: 'emptied-before-swap',
    sentence:
      'While a signal stands that its agent has not given up, a Node whose service runs another file than the one at the path has no pods that a drain evicts.',
    upheldBy:
      '`engine/assist.ts`: cordon, then drain, then the word to go on; `agent/update-steps.ts`: no swap before it',
    holds: ({ nodes }) => nodes.every((node) => !node.host.hasPods || !runsAnother(node.host) || !isSwapping(node)),
  },
  {
    name: 'closed-while-swapped',
    sentence:
      'While a signal stands that its agent has not given up, a Node whose service runs another file than the one at the path is cordoned.',
    upheldBy:
      '`engine/assist.ts`, `agent/update-steps.ts`: the cordon comes before the swap, and goes after the proof; `engine/node actions.ts`: none is lifted from a node at work',
    holds: ({ nodes }) =>
      nodes
        .filter(({ spec, host }) => spec.role === 'worker' && runsAnother(host))
        .every((node) => isClosed(node.object) || !isSwapping(node)),
  },
  {
    name: 'closed-by-others',
    sentence: 'A Node that somebody else cordoned stays cordoned.',
    upheldBy: '`drain/cordon.ts`: a cordon of ours bears its owner, and no other is lifted',
    holds: ({ nodes }) => nodes.every(({ keptClosed, object }) => !keptClosed || isClosed(object)),
  },
  {
    name: 'no-cordon-left',
    sentence: 'At the end of a run no Node bears a cordon, a mark or a taint of ours.',
    upheldBy:
      '`engine/node actions.ts`: what a settled target needs no more is tidied; `agent/update-steps.ts`: taken back before a failure is told',
    atRest: true,
    holds: ({ nodes }) =>
      nodes.every(({ object }) => cordonOwner(object) === undefined && pendingOwner(object) === undefined),
  },
  {
    name: 'nothing-half-done',
    sentence:
      'At the end of a run, however it ended, every signal is over, and every node runs what is at its path: but for those that lost their power, and those whose agent told that the old file could not be put back.',
    upheldBy:
      '`engine/node actions.ts`: signals are withdrawn while that is possible; `agent/update-steps.ts`: what was touched is brought to an end',
    atRest: true,
    holds: ({ nodes }) =>
      nodes.every((node) => node.host.dark || (isAtRest(node) && (!isInMotion(node.host) || isLost(node)))),
  },
];
