/** Predicates on one node: its signal, its cordon, and what its service runs. */
import type { KubeObject, Node } from '../../src/kube/resources.ts';
import { decodeReport } from '../../src/signal/annotations.ts';
import type { NodeGlance } from './glance.ts';

export function isOpen(signal: NodeGlance['signal']): boolean {
  return (
    signal !== undefined &&
    !['Completed', 'Failed', 'FailedDownload'].includes(signal.status?.status ?? '')
  );
}

export function isRolledBack({ object, signal }: NodeGlance): boolean {
  return decodeReport(object.metadata.annotations, signal?.created ?? '')?.rolledBack === true;
}

/** Reports whether the agent reported that it could not restore the old file. */
export function isUnsettled({ object, signal }: NodeGlance): boolean {
  return decodeReport(object.metadata.annotations, signal?.created ?? '')?.rolledBack === false;
}

export function runsAnother({ service, target }: NodeGlance['host']): boolean {
  return service !== undefined && service.file !== target;
}

/**
 * True from the swap until the agent has proven the new file, has restored the old file, or finds that it can do
 * nothing more. Only true while the signal has not ended.
 */
export function isSwapping({ journal, signal }: NodeGlance): boolean {
  return SWAPPING.includes(journal.phase) && isOpen(signal);
}

const SWAPPING: readonly NodeGlance['journal']['phase'][] = [
  'swapping',
  'swapped',
  'restarting',
  'restarted',
  'soaking',
  'swappingBack',
  'swappedBack',
];

/** Reports whether the agent has no open signal and does nothing. */
export function isAtRest({ signal, journal }: NodeGlance): boolean {
  return !isOpen(signal) && journal.phase === 'idle';
}

/**
 * Reports whether k0s's own agent restarted the service for the signal, and our agent either did not take part in the
 * restart or left the signal to k0s's agent.
 */
export function isTheirs({ object, signal, journal, left }: NodeGlance): boolean {
  if (signal?.status?.status !== 'Restart' || journal.phase !== 'idle') return false;
  return (
    left.includes(signal.created) ||
    decodeReport(object.metadata.annotations, signal.created) === undefined
  );
}

/** Reports whether the agent reported a failure, but not that the old file is restored. */
export function isLost(node: NodeGlance): boolean {
  return node.signal?.status?.status === 'Failed' && !isRolledBack(node);
}

export function isClosed(object: KubeObject & Pick<Node, 'spec'>): boolean {
  return object.spec?.unschedulable === true;
}
