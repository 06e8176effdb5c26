/** The ControlNode of a controller. It is created once and never changed. Its status is written at every start. */
import type { KubeClient } from '../../../../src/kube/client.ts';
import { isNotFound } from '../../../../src/kube/status-error.ts';
import { type ControlNode, controlNodes, MODE_ANNOTATION } from '../../../../src/signal/names.ts';

export interface ControlNodeFacts {
  readonly name: string;
  readonly mode: 'controller' | 'controller+worker';
  /** The address of the API server on this host. */
  readonly address: string;
  readonly version: string;
}

export async function setUpControlNode(client: KubeClient, facts: ControlNodeFacts): Promise<void> {
  const { name, mode, address, version } = facts;
  const found = await client.get(controlNodes, name).catch(async (error: unknown) => {
    if (!isNotFound(error)) throw error;
    return await client.create(controlNodes, freshControlNode(name, mode));
  });
  const addresses = [
    { address, type: 'InternalIP' },
    { address: name, type: 'Hostname' },
  ];
  await client.replace(
    controlNodes,
    { ...found, status: { addresses, k0sVersion: version } },
    { subresource: 'status' },
  );
}

function freshControlNode(name: string, mode: ControlNodeFacts['mode']): ControlNode {
  const labels = {
    'kubernetes.io/hostname': name,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
  };
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: { name, labels, annotations: { [MODE_ANNOTATION]: mode } },
  };
}
