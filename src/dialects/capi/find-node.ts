/** Finds the Node of the Machine in a hook's body, which has neither uid nor status. */
import { CONTROL_PLANE_LABEL, type Machine, machines, NODE_ANNOTATIONS } from '../../api/capi/machine.ts';
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

/** Returns a message if the Machine does not exist, wants another version, or has no Node that is surely its own. */
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
  const disagreement = disagreementOf(machine, node);
  if (disagreement !== undefined)
    return `${title} and node ${node.metadata.name} do not belong together: ${disagreement}; check that --kubeconfig is for the cluster of this Machine`;
  return { node, role: machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined ? 'worker' : 'controller' };
}

/** Nodes of two clusters may have the same name, so the name alone proves nothing. Undefined if everything agrees. */
function disagreementOf({ metadata, spec, status }: Machine, node: Node): string | undefined {
  const { annotations = {}, uid = '' } = node.metadata;
  const facts: [ofMachine: string, wanted: string, ofNode: string, found: string | undefined][] = [
    ['spec.providerID', spec?.providerID ?? '', 'spec.providerID', node.spec?.providerID],
    ['spec.clusterName', spec?.clusterName ?? '', NODE_ANNOTATIONS.cluster, annotations[NODE_ANNOTATIONS.cluster]],
    [
      'metadata.namespace',
      metadata.namespace ?? '',
      NODE_ANNOTATIONS.namespace,
      annotations[NODE_ANNOTATIONS.namespace],
    ],
    ['metadata.name', metadata.name, NODE_ANNOTATIONS.machine, annotations[NODE_ANNOTATIONS.machine]],
    ['status.nodeRef.uid', status?.nodeRef?.uid ?? uid, 'metadata.uid', uid],
  ];
  const wrong = facts.filter(([, wanted, , found]) => wanted === '' || wanted !== found);
  if (wrong.length === 0) return undefined;
  return wrong
    .map(
      ([ofMachine, wanted, ofNode, found]) =>
        `${ofMachine} is ${wanted || 'empty'}, ${ofNode} of the Node is ${found || 'missing'}`,
    )
    .join('; ');
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
