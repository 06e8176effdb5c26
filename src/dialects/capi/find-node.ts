/** Finds the Node of the Machine in a hook's body, which has neither uid nor status. */
import { CONTROL_PLANE_LABEL, machines } from '../../api/capi/machine.ts';
import type { Role } from '../../engine/model/recorded.ts';
import type { KubeClient, RequestOptions } from '../../kube/client.ts';
import { nodes } from '../../kube/resources.ts';
import { isNotFound } from '../../kube/status-error.ts';
import type { Node } from '../../kube/types.ts';

export interface Clients {
  /** Of the cluster with the Machines. */
  readonly management: KubeClient;
  /** Of the cluster with the Nodes; may be the same. */
  readonly workload: KubeClient;
}

export interface Found {
  readonly node: Node;
  readonly role: Role;
}

/** Returns a message if the Machine does not exist, wants another version, or has no Node. */
export async function findNode(
  { management, workload }: Clients,
  wanted: { readonly namespace: string; readonly name: string; readonly version: string },
  options: RequestOptions,
): Promise<Found | string> {
  const { namespace, name, version } = wanted;
  const title = `Machine ${namespace}/${name}`;
  const machine = await orUndefined(management.get(machines, name, { ...options, namespace }));
  if (!machine) return `${title} does not exist`;
  // The body is not trusted, since anybody can send one: only the Machine in the API counts.
  const { version: live = 'no version', providerID } = machine.spec ?? {};
  if (live !== version) return `${title} has spec.version ${live}, but the call asks for ${version}`;
  const node = await nodeOf(workload, machine.status?.nodeRef?.name, providerID, options);
  if (!node) return `${title} has no Node yet`;
  return { node, role: machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined ? 'worker' : 'controller' };
}

async function nodeOf(
  client: KubeClient,
  name: string | undefined,
  providerID: string | undefined,
  options: RequestOptions,
): Promise<Node | undefined> {
  if (name !== undefined) return await orUndefined(client.get(nodes, name, options));
  if (!providerID) return undefined;
  return (await client.listAll(nodes, options)).items.find(({ spec }) => spec?.providerID === providerID);
}

async function orUndefined<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isNotFound(error) && error.status.details?.name !== undefined) return undefined;
    throw error;
  }
}
