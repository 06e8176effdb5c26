/** Three Nodes whose Machines belong to one MachineDeployment, and so are one plan. The caller chooses Machines as Cluster API does. */
import { namespaces, nodes } from '../../src/kube/resources.ts';
import { agents, type NextStep } from './k0s.ts';
import {
  createMachineNode,
  extension,
  type OwnerOfScene,
  requestUpdate,
} from './machine-scenes.ts';
import type { Stage } from './stage.ts';

const OWNED = ['w1', 'w2', 'w3'] as const;
/** The second of a scene in which Cluster API chooses the first Machine. */
const BEGIN = 60;
const FROM = 'v1.35.6+k0s.0';
const TO = 'v1.36.3+k0s.2';

const OWNED_BY: OwnerOfScene = {
  owner: {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    name: 'web',
    uid: 'uid-of-web',
  },
  nodes: OWNED,
};

/** Starts the extension and the agents. Cluster API has chosen no Machine. */
export async function openOwner(
  stage: Stage,
  { next, before }: { readonly next?: NextStep; readonly before?: () => Promise<void> } = {},
): Promise<void> {
  for (const name of ['refit-system', 'fleet'])
    await stage.create(namespaces, { metadata: { name } });
  for (const node of OWNED) {
    await createMachineNode(stage, node);
    const status = { nodeInfo: { kubeletVersion: 'v1.35.6+k0s' } };
    await stage.client.patch(nodes, node, { status }, { type: 'merge', subresource: 'status' });
  }
  await before?.();
  await stage.start(extension);
  await stage.start(agents(next, new Map(OWNED.map((node) => [node, FROM]))));
  await stage.waitUntil(BEGIN);
}

/** Cluster API chooses the Machine of this Node. */
export async function choose(stage: Stage, name: (typeof OWNED)[number]): Promise<void> {
  await requestUpdate(stage, name, TO, `request-${name}-${stage.clock.now()}`, OWNED_BY);
}
