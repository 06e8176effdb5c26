/** Owns the arguments of `kubectl drain` for a node, in the order of the original. */
import type { DrainSpec } from '../../../api/cattle/workload.ts';
import { formatGoDuration } from '../../../util/go-duration.ts';
import { CONTROLLER_LABEL } from '../names.ts';
import { selectorText } from '../selector-text.ts';

/** The Jobs' own pods, and the controller's, are never drained. Throws SelectorError. */
export function drainArguments(drain: DrainSpec, nodeName: string): string[] {
  const { deleteLocalData = true, deleteEmptydirData = true, ignoreDaemonSets = true, timeout } = drain;
  const { skipWaitForDeleteTimeout = 0, gracePeriod } = drain;
  const flags: readonly [boolean, ...string[]][] = [
    [ignoreDaemonSets, '--ignore-daemonsets'],
    [deleteLocalData && deleteEmptydirData, '--delete-emptydir-data'],
    [drain.force === true, '--force'],
    [timeout !== undefined, '--timeout', typeof timeout === 'number' ? formatGoDuration(timeout) : String(timeout)],
    [gracePeriod !== undefined, '--grace-period', String(gracePeriod)],
    [drain.disableEviction === true, '--disable-eviction=true'],
    [skipWaitForDeleteTimeout > 0, '--skip-wait-for-delete-timeout', String(skipWaitForDeleteTimeout)],
  ];
  const selector = selectorText(drain.podSelector ?? {}, `!${CONTROLLER_LABEL}`);
  const given = flags.flatMap(([isGiven, ...texts]) => (isGiven ? texts : []));
  return ['drain', nodeName, '--pod-selector', selector, ...given];
}
