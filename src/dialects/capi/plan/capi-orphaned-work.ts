/** Finds what remains of an update on a Node after somebody removes its request: a signal, a cordon or a taint. */
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

/**
 * Returns the orphaned work on these Nodes. The result is computed once for each list of Nodes. Without this cache, the
 * work would grow fast: every Node that was ever updated is a plan, and each change of a Node causes a turn for every
 * plan.
 */
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

/**
 * Returns the uid of a removed request whose signal, cordon or taint is still on the node; undefined if nothing is
 * left, or if a later request is in progress.
 */
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

/**
 * Returns the signal on which the node still works, even if an earlier request sent it; undefined if there is no such
 * signal. The signal of an earlier request may remain after its update failed at the deadline, or after the request was
 * replaced.
 */
export function signalAtWorkOn({ metadata: { annotations } }: Node): SignalData | undefined {
  const signal = decodeSignal(annotations);
  const isOurs = decodeAgentPolicy(annotations).cordoning === 'leader';
  return signal && isOurs && !isOver(signal) ? signal : undefined;
}
