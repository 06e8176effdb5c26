/** The Machines of a stand-in cluster: a minimal definition of the kind, and objects as Cluster API leaves them. */
import { CONTROL_PLANE_LABEL, type Machine, machines } from '../../src/api/capi/machine.ts';
import { customResourceDefinitions } from '../../src/api/crd.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { apiVersionOf } from '../../src/kube/resources.ts';
import type { Clock } from '../../src/util/clock.ts';
import { createMissing, untilServed } from './objects.ts';

/** The real definition has far more fields; whatever they hold is kept. */
export async function installMachines(client: KubeClient, clock: Clock): Promise<void> {
  const { group, version, kind, plural } = machines;
  const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const openAPIV3Schema = { type: 'object', properties: { spec: anything, status: anything } };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, plural, singular: 'machine', listKind: 'MachineList' },
      scope: 'Namespaced',
      versions: [
        { name: version, served: true, storage: true, schema: { openAPIV3Schema }, subresources: { status: {} } },
      ],
    },
  };
  await createMissing(client, customResourceDefinitions, definition);
  await untilServed(client, machines, clock);
}

export interface ExampleMachine {
  readonly name: string;
  readonly version: string;
  readonly node: string;
  readonly controlPlane?: boolean;
}

/** In namespace `default`, provisioned, with its Node. */
export async function createMachine(client: KubeClient, example: ExampleMachine): Promise<Machine> {
  const { name, version, node, controlPlane } = example;
  const created = await client.create(machines, {
    apiVersion: apiVersionOf(machines),
    kind: machines.kind,
    metadata: { name, namespace: 'default', labels: controlPlane ? { [CONTROL_PLANE_LABEL]: '' } : {} },
    spec: { clusterName: 'stand-in', version, providerID: `stand-in://${node}` },
  } as Machine);
  return await client.replace(machines, { ...created, status: { nodeRef: { name: node } } }, { subresource: 'status' });
}
