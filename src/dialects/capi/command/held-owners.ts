/** Says after `refit hold` what the hold of a Machine means for its owner. */
import { NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import { plansAmong } from '../../../engine/contract/plan-objects.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { type Node } from '../../../kube/resources.ts';
import { ifAllowed } from '../../../kube/status-error.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import { effectOfWaiting } from '../held-machines.ts';
import { capi } from '../plan/capi-dialect.ts';
import { groupOf } from '../plan/machine-groups.ts';
import { recordOf, updateOn } from '../plan/machine-update.ts';
import { namespaceOf } from '../plan/rollout.ts';

/** Resolves with sentences about the owners of the Machines of these Nodes, whose plans wait for them or may do so. */
export async function heldOwners(
  held: readonly Node[],
  client: KubeClient,
  abort: AbortSignal,
): Promise<string[]> {
  const isMachine = ({ metadata: { annotations } }: Node): boolean =>
    annotations?.[NODE_ANNOTATIONS.machine] !== undefined;
  if (!held.some(isMachine)) return [];
  const all = (await ifAllowed(listNodes(client, { abort })))?.items ?? [];
  const plans = plansAmong(capi, all);
  return held.flatMap(({ metadata: { name } }) =>
    plans.flatMap((plan) => sentenceAbout(name, all, plan) ?? []),
  );
}

/** Returns the sentence about the plan; undefined if the Node is no target of it, or does not wait for its start. */
function sentenceAbout(name: string, all: readonly Node[], plan: Node): string | undefined {
  const update = updateOn(plan);
  const group = groupOf(all, plan);
  if (update?.owner === undefined || group === undefined) return undefined;
  const { kind } = update.owner;
  const owner = { kind, name: `${namespaceOf(update)}/${update.owner.name}` };
  const effect = `while ${name} is held, ${effectOfWaiting(owner)}`;
  const own = group.chosen.find(({ node }) => node.metadata.name === name);
  if (own !== undefined) {
    const state = recordOf(own.node, own.update)?.state ?? 'pending';
    if (state !== 'pending') return undefined;
    return `Cluster API has chosen the Machine of ${name} already: ${effect}.`;
  }
  return group.unchosen.some(({ metadata }) => metadata.name === name)
    ? `If Cluster API chooses the Machine of ${name}: ${effect}.`
    : undefined;
}
