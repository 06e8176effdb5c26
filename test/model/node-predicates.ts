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

/** Its agent reports that it could not put the old file back. */
export function isUnsettled({ object, signal }: NodeGlance): boolean {
  return decodeReport(object.metadata.annotations, signal?.created ?? '')?.rolledBack === false;
}

export function runsAnother({ service, target }: NodeGlance['host']): boolean {
  return service !== undefined && service.file !== target;
}

/**
 * From the swap until the agent has proven the new file, or put the old one back, or finds that it can do nothing more;
 * while any signal stands.
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

/** Nothing is asked of its agent, and it is at nothing. */
export function isAtRest({ signal, journal }: NodeGlance): boolean {
  return !isOpen(signal) && journal.phase === 'idle';
}

/** k0s's own agent restarted the service for the signal, and ours has no part in it, or left it. */
export function isTheirs({ object, signal, journal, left }: NodeGlance): boolean {
  if (signal?.status?.status !== 'Restart' || journal.phase !== 'idle') return false;
  return (
    left.includes(signal.created) ||
    decodeReport(object.metadata.annotations, signal.created) === undefined
  );
}

/** Its agent told a failure, and not that the old file is back. */
export function isLost(node: NodeGlance): boolean {
  return node.signal?.status?.status === 'Failed' && !isRolledBack(node);
}

export function isClosed(object: KubeObject & Pick<Node, 'spec'>): boolean {
  return object.spec?.unschedulable === true;
}
