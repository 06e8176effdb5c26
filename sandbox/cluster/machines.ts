/** The Machines of a stand-in cluster: a minimal definition of the kind, and objects as Cluster API leaves them. */
import {
  CONTROL_PLANE_LABEL,
  clusters,
  drainRules,
  type Machine,
  machineDeployments,
  machines,
  NODE_ANNOTATIONS,
  SET_LABELS,
} from '../../src/api/capi/machine.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import {
  apiVersionOf,
  customResourceDefinitions,
  type KubeObject,
  namespaced,
  nodes,
  type OwnerReference,
  type Resource,
} from '../../src/kube/resources.ts';
import type { Clock } from '../../src/util/clock.ts';
import { createMissing, untilServed } from './objects.ts';

export const machineSets = namespaced<KubeObject>(apiVersionOf(machines), 'MachineSet');

export const MACHINE_KINDS: readonly Resource[] = [
  machines,
  machineSets,
  machineDeployments,
  clusters,
  drainRules,
];

/** The real definitions have far more fields. These definitions name no fields and keep all of them. */
export async function installMachines(client: KubeClient, clock: Clock): Promise<void> {
  for (const resource of MACHINE_KINDS) await install(client, resource, clock);
}

async function install(client: KubeClient, resource: Resource, clock: Clock): Promise<void> {
  const { group, version, kind, plural } = resource;
  const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const openAPIV3Schema = { type: 'object', properties: { spec: anything, status: anything } };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: 'Namespaced',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema },
          subresources: { status: {} },
        },
      ],
    },
  };
  await createMissing(client, customResourceDefinitions, definition);
  await untilServed(client, resource, clock);
}

export interface ExampleMachine {
  readonly name: string;
  readonly version: string;
  readonly node: string;
  readonly controlPlane?: boolean;
  /** `CLUSTER` by default. */
  readonly cluster?: string;
  /** The name of the existing MachineDeployment of the Machine. By default, the Machine belongs to none. */
  readonly deployment?: string;
}

const NAMESPACE = 'default';
export const CLUSTER = 'stand-in';

interface Identity {
  readonly metadata: { readonly annotations: Record<string, string> };
  readonly spec: { readonly providerID: string };
}

/** Returns the fields that Cluster API and the cloud provider write into the Node of a Machine. */
export function identityOf({
  name,
  node,
  cluster = CLUSTER,
}: Omit<ExampleMachine, 'version'>): Identity {
  const { cluster: ofCluster, namespace, machine } = NODE_ANNOTATIONS;
  return {
    metadata: { annotations: { [ofCluster]: cluster, [namespace]: NAMESPACE, [machine]: name } },
    spec: { providerID: `stand-in://${node}` },
  };
}

/** Returns the references that each Machine and each template of Machines contains. */
export function referencesOf(name: string): object {
  return {
    bootstrap: {
      configRef: { apiGroup: 'bootstrap.cluster.x-k8s.io', kind: 'K0sWorkerConfig', name },
    },
    infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'DevMachine', name },
  };
}

/** Marks an existing Node as the Node of the Machine. */
export async function joinNode(
  client: KubeClient,
  machine: Omit<ExampleMachine, 'version'>,
): Promise<void> {
  await client.patch(nodes, machine.node, identityOf(machine), { type: 'merge' });
}

/** Creates a Machine in the namespace `default`. The Machine is provisioned and has its Node. */
export async function createMachine(client: KubeClient, example: ExampleMachine): Promise<Machine> {
  const { name, version, node, controlPlane, cluster = CLUSTER, deployment } = example;
  const created = await client.create(machines, {
    apiVersion: apiVersionOf(machines),
    kind: machines.kind,
    metadata: {
      name,
      namespace: NAMESPACE,
      labels: {
        ...(controlPlane && { [CONTROL_PLANE_LABEL]: '' }),
        ...(deployment !== undefined && { [SET_LABELS.deployment]: deployment }),
      },
      ...(deployment !== undefined && { ownerReferences: [await setOf(client, deployment)] }),
    },
    spec: { clusterName: cluster, version, ...referencesOf(name), ...identityOf(example).spec },
  });
  return await client.replace(
    machines,
    { ...created, status: { nodeRef: { name: node } } },
    { subresource: 'status' },
  );
}

/** Creates a MachineDeployment whose Machines get this version, and its MachineSet. */
export async function createDeployment(
  client: KubeClient,
  name: string,
  version: string,
): Promise<void> {
  const spec = { template: { spec: { version } } };
  const deployment = await client.create(machineDeployments, {
    apiVersion: apiVersionOf(machineDeployments),
    kind: machineDeployments.kind,
    metadata: { name, namespace: NAMESPACE },
    spec,
  });
  const set = {
    apiVersion: apiVersionOf(machineSets),
    kind: machineSets.kind,
    metadata: {
      name: nameOfSet(name),
      namespace: NAMESPACE,
      labels: { [SET_LABELS.deployment]: name },
      ownerReferences: [controllerReference(machineDeployments, deployment)],
    },
    spec,
  };
  await client.create(machineSets, set);
}

/**
 * Returns the reference of a Machine to the MachineSet of its MachineDeployment. The MachineSet must exist, because the
 * garbage collector of a real control plane deletes a Machine whose owner does not.
 */
export async function setOf(client: KubeClient, deployment: string): Promise<OwnerReference> {
  const options = { namespace: NAMESPACE };
  const set = await client.get(machineSets, nameOfSet(deployment), options);
  return controllerReference(machineSets, set);
}

const nameOfSet = (deployment: string): string => `${deployment}-x7k2p`;

function controllerReference(resource: Resource, { metadata }: KubeObject): OwnerReference {
  const { name, uid } = metadata;
  if (uid === undefined) throw new Error(`${resource.kind} ${name} has no uid`);
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name,
    uid,
    controller: true,
  };
}
