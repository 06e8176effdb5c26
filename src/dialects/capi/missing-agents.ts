/** Finds nodes without an agent that could update them, before their update is accepted. */
import type { Triple } from '../../api/capi/hooks.ts';
import { machines, SET_LABELS } from '../../api/capi/machine.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type KubeObject, nodes } from '../../kube/resources.ts';
import { agentOf } from '../../signal/agent-presence.ts';

/** An agent says that it is there within seconds of its start. */
const JOINS_WITHIN_MS = 300_000;

/**
 * Why Refit cannot update this Machine, or the Machines of this MachineSet; undefined if it can. Machines without a Node yet
 * are new. Throws for a Node that has just joined: an answer now would have all its Machines replaced.
 */
export async function missingAgent(
  management: KubeClient,
  workload: KubeClient,
  { machine, machineSet }: Triple,
  now: number,
  abort: AbortSignal,
): Promise<string | undefined> {
  const { name, namespace = 'default', labels } = (machine ?? machineSet)?.metadata ?? { name: '' };
  const labelSelector = `${SET_LABELS.hash}=${labels?.[SET_LABELS.hash] ?? name}`;
  const found = machine
    ? [await management.get(machines, name, { namespace, abort })]
    : (await management.listAll(machines, { namespace, labelSelector, abort })).items;
  const named = new Set(found.map(({ status }) => status?.nodeRef?.name));
  const all = (await workload.listAll(nodes, { abort })).items;
  for (const node of all) if (agentOf(node).ours) named.delete(node.metadata.name);
  const [lacking] = [...named].filter((node) => node !== undefined);
  const young = all.find(({ metadata }) => named.has(metadata.name) && now - createdAt(metadata) < JOINS_WITHIN_MS);
  if (young) throw new Error(`node ${young.metadata.name} has just joined, and has no agent of Refit yet`);
  return lacking && `node ${lacking} has no agent of Refit`;
}

function createdAt({ creationTimestamp }: KubeObject['metadata']): number {
  return creationTimestamp === undefined ? 0 : Date.parse(creationTimestamp);
}
