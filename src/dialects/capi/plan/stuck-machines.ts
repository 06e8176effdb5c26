/**
 * Deletes the Machine of an update that failed at its deadline, if a flag allows it, so that its MachineSet replaces
 * it.
 */
import { type Machine, machines } from '../../../api/capi/machine.ts';
import { isMissedDeadline } from '../../../engine/model/reasons.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kubeletVersionOf, type Node } from '../../../kube/resources.ts';
import { decodeReport, decodeSignal } from '../../../signal/annotations.ts';
import { isOver } from '../../../signal/at-work.ts';
import {
  AGENT_ANNOTATION,
  REPORT_ANNOTATION,
  SIGNAL_DATA_ANNOTATION,
} from '../../../signal/names.ts';
import type { Clock } from '../../../util/clock.ts';
import { formatDuration } from '../../../util/duration.ts';
import { ownMember } from '../../../util/own-member.ts';
import { mayBePartOf } from '../../../versions/release-parts.ts';
import { recordOf, UPDATE_ANNOTATION, updateOn } from './machine-update.ts';

/**
 * Deletes the Machine if the conditions for that are met. Resolves with a clause that is appended to the message of the
 * failure; the clause is empty if Refit did nothing.
 */
export type ReplaceStuck = (machine: Machine, node: Node, abort: AbortSignal) => Promise<string>;

/**
 * Returns a function that deletes a stuck Machine after this process has seen no change on its Node for `silentMs`
 * milliseconds. If `silentMs` is undefined, it deletes no Machine.
 */
export function stuckMachines(
  management: KubeClient,
  silentMs: number | undefined,
  clock: Clock,
): ReplaceStuck {
  const watched = new Map<string, { readonly report: string; readonly at: number }>();
  return async ({ metadata }, node, abort) => {
    const { name, namespace, uid = '', resourceVersion, ownerReferences = [] } = metadata;
    const isReplaced = ownerReferences.some(
      ({ kind, controller }) => kind === 'MachineSet' && controller === true,
    );
    if (silentMs === undefined || !isReplaced || !isSilent(node)) return '';
    const { annotations = {} } = node.metadata;
    const told = [UPDATE_ANNOTATION, SIGNAL_DATA_ANNOTATION, REPORT_ANNOTATION, AGENT_ANNOTATION];
    const report = JSON.stringify(told.map((key) => ownMember(annotations, key)));
    const now = clock.monotonic();
    const known = watched.get(uid);
    const at = known?.report === report ? known.at : now;
    watched.set(uid, { report, at });
    if (now - at < silentMs)
      return `; its Machine is deleted once the node has reported nothing new for ${formatDuration(silentMs)}`;
    await management.delete(machines, name, { abort, namespace, uid, resourceVersion });
    watched.delete(uid);
    return '; its Machine was deleted';
  };
}

/**
 * Returns true if the update failed at the deadline, and neither the agent nor the kubelet has
 * reported since then that the update has ended.
 */
function isSilent(node: Node): boolean {
  const update = updateOn(node);
  const record = update && recordOf(node, update);
  const reason = record?.failure ?? record?.reason;
  if (!update || !reason || !isMissedDeadline(reason)) return false;
  if (mayBePartOf(kubeletVersionOf(node) ?? '', update.version)) return false;
  const { annotations } = node.metadata;
  const signal = decodeSignal(annotations);
  // If the node had not started, the leader itself has ended the signal, and the report contains the leader's reason. Such a
  // report does not come from the node.
  return (
    !signal ||
    !isOver(signal) ||
    decodeReport(annotations, signal.created)?.reason === reason.message
  );
}
