/** Finds what remains of an update on a Node after somebody removes its request: a signal, a cordon or a taint. */
import { machineDeployments, machines } from '../../../api/capi/machine.ts';
import { cordonOwner, pendingOwner, readOwner } from '../../../drain/cordon-marks.ts';
import type { OrphanedPlan } from '../../../engine/contract/features.ts';
import type { World } from '../../../engine/contract/world.ts';
import { because } from '../../../engine/model/reasons.ts';
import { isFinal } from '../../../engine/model/rollout.ts';
import { type Node, nodes } from '../../../kube/resources.ts';
import { decodeAgentPolicy, decodeSignal, type SignalData } from '../../../signal/annotations.ts';
import { isOver } from '../../../signal/at-work.ts';
import { ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { onceForEach } from '../../../util/memo.ts';
import { isController } from '../../shared/node-endpoints.ts';
import { awaitedBy, rolloutUidOf } from './machine-groups.ts';
import { recordOf, updateOn } from './machine-update.ts';
import { rolloutOf } from './rollout.ts';

export const orphanedPlans = (world: World): readonly OrphanedPlan<Node>[] =>
  orphanedAmong(world.list(nodes));

/**
 * Returns the orphaned work on these Nodes. The result is computed once for each list of Nodes. Without this cache, the
 * work would grow fast: every Node that was ever updated is a plan, and each change of a Node causes a turn for every
 * plan.
 */
const orphanedAmong = onceForEach((all: readonly Node[]): readonly OrphanedPlan<Node>[] =>
  all.flatMap((node) => {
    const orphan = orphanOn(node);
    if (orphan === undefined || (orphan.isTaintOnly && awaitedBy(all).get(node) === orphan.uid))
      return [];
    const { uid, kind } = orphan;
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
    const rollout = rolloutOf(node, update, record);
    return [{ plan: node, rollout: { ...rollout, source: { ...rollout.source, kind } } }];
  }),
);

/** The plan of a removed request, as the marks on its Node name it. */
interface Orphan {
  readonly uid: string;
  readonly kind: string;
  /** True if only the taint of a Node that waits for its update is left. */
  readonly isTaintOnly: boolean;
}

/**
 * Returns the plan of a removed request whose signal, cordon or taint is still on the node; undefined if nothing is
 * left, or if a later request is in progress.
 */
export const orphanOn = onceForEach((node: Node): Orphan | undefined => {
  const update = updateOn(node);
  const record = update && recordOf(node, update);
  const signal = decodeSignal(node.metadata.annotations);
  const isSignalOver = signal === undefined || isOver(signal);
  const hasEnded = record !== undefined && isFinal(record) && isSignalOver;
  if (update && !hasEnded) return undefined;
  const { plan, kind = machines.kind } = readOwner(cordonOwner(node) ?? '') ?? {};
  const known = update && rolloutUidOf(update);
  if (signalAtWorkOn(node)) {
    const uid = node.metadata.annotations?.[ROLLOUT_ANNOTATION]?.split('/')[0] ?? '';
    return { uid, kind, isTaintOnly: false };
  }
  if (plan !== undefined && isOfMachines(kind))
    return plan === known ? undefined : { uid: plan, kind, isTaintOnly: false };
  const pending = pendingOwner(node) ?? '';
  const [, tainting = '', uid] = /^([A-Za-z0-9]+)\.(.+)$/.exec(pending) ?? [];
  return uid === undefined || uid === known || !isOfMachines(tainting)
    ? undefined
    : { uid, kind: tainting, isTaintOnly: true };
});

/** Returns true if plans of this kind are those of Machines or of their owners. */
function isOfMachines(kind: string): boolean {
  return (
    kind === machines.kind || kind === machineDeployments.kind || kind.endsWith('ControlPlane')
  );
}

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
