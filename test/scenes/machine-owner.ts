/** Three Nodes whose Machines belong to one MachineDeployment, and so are one plan. The caller chooses Machines as Cluster API does. */
import { withRequest } from '../../src/dialects/capi/plan/machine-update.ts';
import { namespaces, nodes } from '../../src/kube/resources.ts';
import { agents, type NextStep } from './k0s.ts';
import { createMachineNode, extension } from './machine-scenes.ts';
import type { Stage } from './stage.ts';

export const OWNED = ['w1', 'w2', 'w3'] as const;
/** The second of a scene in which Cluster API chooses the first Machine. */
const BEGIN = 60;
const FROM = 'v1.35.6+k0s.0';
const TO = 'v1.36.3+k0s.2';

const OWNER = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineDeployment',
  name: 'web',
  uid: 'uid-of-web',
  rollout: '7b1c5e0a-0000-4000-8000-000000000001',
  nodes: [...OWNED],
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
  const node = await stage.client.get(nodes, name);
  const update = {
    uid: `request-for-${name}-at-${stage.clock.now()}`,
    machine: `fleet/machine-of-${name}`,
    version: TO,
    role: 'worker',
    requested: new Date(stage.clock.now()).toISOString(),
    platform: 'linux-amd64',
    url: 'https://example.com/k0s',
    owner: OWNER,
  } as const;
  await stage.client.replace(nodes, withRequest(node, update));
}
