/** Finds what an update leaves on a Node when somebody removes its request: a signal, a cordon or a taint. */
import { machines } from '../../../api/capi/machine.ts';
import { cordonOwner, pendingOwner, readOwner } from '../../../drain/cordon-marks.ts';
import type { OrphanedPlan } from '../../../engine/contract/features.ts';
import type { World } from '../../../engine/contract/world.ts';
import { because } from '../../../engine/model/reasons.ts';
import { isFinal, pendingOwnerOf } from '../../../engine/model/rollout.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { decodeAgentPolicy, decodeSignal, type SignalData } from '../../../signal/annotations.ts';
import { isOver } from '../../../signal/at-work.ts';
import { ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { onceForEach } from '../../../util/memo.ts';
import { isController } from '../../shared/node-endpoints.ts';
import { recordOf, rolloutOf, updateOn } from './rollout.ts';

export const orphanedPlans = (world: World): readonly OrphanedPlan<Node>[] =>
  orphanedAmong(world.list(nodes));

/** Once for each list of Nodes: all that were updated once are plans, and a change wakes them all. */
const orphanedAmong = onceForEach((all: readonly Node[]): readonly OrphanedPlan<Node>[] =>
  all.flatMap((node) => {
    const uid = orphanOn(node);
    if (uid === undefined) return [];
    const { planId = '', created = '', command } = signalAtWorkOn(node) ?? {};
    const role = isController(node) ? 'controller' : 'worker';
    const asked = {
      machine: node.metadata.name,
      version: command?.version ?? '',
      requested: planId,
    };
    const procedure = command?.kind === 'kubeadmupdate' && { procedure: command.kind };
    const update = { uid, ...asked, role, platform: '', url: '', ...procedure } as const;
    const reason = because('PlanGone', 'its update request was removed');
    const record = {
      uid,
      phase: 'failed',
      blocked: false,
      reason,
      state: 'failed',
      since: created,
    } as const;
    return [{ plan: node, rollout: rolloutOf(node, update, record) }];
  }),
);

/** The uid of an earlier request that is gone; undefined if nothing is left of it, or a later one or its signal is at work. */
export const orphanOn = onceForEach((node: Node): string | undefined => {
  const update = updateOn(node);
  const record = update && recordOf(node, update);
  const signal = decodeSignal(node.metadata.annotations);
  const isSignalOver = signal === undefined || isOver(signal);
  const hasEnded = record !== undefined && isFinal(record) && isSignalOver;
  if (update && !hasEnded) return undefined;
  if (signalAtWorkOn(node))
    return node.metadata.annotations?.[ROLLOUT_ANNOTATION]?.split('/')[0] ?? '';
  const { plan, kind } = readOwner(cordonOwner(node) ?? '') ?? {};
  if (kind === machines.kind) return plan === update?.uid ? undefined : plan;
  const pending = pendingOwner(node);
  const own = pendingOwnerOf({ kind: machines.kind, uid: '' });
  const uid = pending?.startsWith(own) === true ? pending.slice(own.length) : undefined;
  return uid === update?.uid ? undefined : uid;
});

/** The signal that the node still works on, of whichever request: one that failed at its deadline, or was made again, leaves it. */
export function signalAtWorkOn({ metadata: { annotations } }: Node): SignalData | undefined {
  const signal = decodeSignal(annotations);
  const isOurs = decodeAgentPolicy(annotations).cordoning === 'leader';
  return signal && isOurs && !isOver(signal) ? signal : undefined;
}
