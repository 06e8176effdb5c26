/** Describes what a write changes on a node's object: its signal, its cordon or its taint. */
import { cordonOwner, pendingOwner } from '../../src/drain/cordon-marks.ts';
import type { KubeObject, Node } from '../../src/kube/resources.ts';
import { decodeSignal } from '../../src/signal/annotations.ts';
import { decodePrefetch } from '../../src/signal/prefetch.ts';

/** Describes the write with words that follow "asks to". */
export function wordsFor(before: KubeObject, after: KubeObject): string {
  const { name } = after.metadata;
  const words = [signalWords, aheadWords, cordonWords, taintWords].map((wordsOf) =>
    wordsOf(before, after),
  );
  return (
    words.flatMap((word) => (word === '' ? [] : `${word} ${name}`)).join(' and ') ||
    `write ${name} as it is`
  );
}

function signalWords(before: KubeObject, after: KubeObject): string {
  const [old, signal] = [before, after].map(({ metadata }) => decodeSignal(metadata.annotations));
  if (!signal || (old?.created === signal.created && old.status?.status === signal.status?.status))
    return '';
  if (signal.status === undefined) return `signal ${signal.command.version} to`;
  return signal.status.status === 'Failed'
    ? 'cancel the signal of'
    : `write ${signal.status.status} on`;
}

function aheadWords(before: KubeObject, after: KubeObject): string {
  const [old, wish] = [before, after].map(
    ({ metadata }) => decodePrefetch(metadata.annotations)?.command.version,
  );
  if (old === wish) return '';
  return wish === undefined ? 'cancel the prefetch of' : `have ${wish} fetched ahead on`;
}

function cordonWords(before: Node, after: Node): string {
  const isClosed = ({ spec }: Node): boolean => spec?.unschedulable === true;
  if (isClosed(before) !== isClosed(after)) return isClosed(after) ? 'cordon' : 'uncordon';
  return cordonOwner(before) === cordonOwner(after) ? '' : 'unmark';
}

function taintWords(before: Node, after: Node): string {
  const isTainted = (node: Node): boolean => pendingOwner(node) !== undefined;
  if (isTainted(before) === isTainted(after)) return '';
  return isTainted(after) ? 'taint' : 'untaint';
}
