/**
 * Machines of Cluster API in the table. Cluster API asks for the update of the next Machine as soon as `maxUnavailable` of
 * the MachineDeployment allows it.
 */
import { capiModule } from '../../../src/dialects/capi/module.ts';
import { recordOf, updateOn } from '../../../src/dialects/capi/plan/machine-update.ts';
import { type Node, namespaces, nodes } from '../../../src/kube/resources.ts';
import { FROM } from '../../scenes/k0s.ts';
import { createMachineNode, extension, requestUpdate } from '../../scenes/machine-scenes.ts';
import type { RunningActor } from '../../scenes/stage.ts';
import { startCrew } from '../../truth/labs/crew.ts';
import type { DialectUnderTest, World } from '../world.ts';
import { agentsIn } from './agents.ts';

const NODES = ['w1', 'w2', 'w3'] as const;
const TO = 'v1.36.3+k0s.2';

/** The MachineDeployment of all Machines. */
const OWNER = {
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'MachineDeployment',
  name: 'workers',
  uid: 'uid-of-workers',
} as const;

async function createMachine({ stage, truth }: World, node: string): Promise<void> {
  await createMachineNode(stage, node);
  truth.install(node, FROM);
}

/** Returns true if the extension says that the update of the Machine to this version is done. */
function isOver(node: Node, version: string): boolean {
  const update = updateOn(node);
  return update?.version === version && recordOf(node, update)?.state === 'done';
}

/** What the controllers of Cluster API do for the MachineDeployment of the scene, together with the hook of the extension. */
class ClusterApi implements RunningActor {
  readonly #world: World;
  /** The version that the MachineDeployment has; undefined before its first change. */
  #version: string | undefined;
  #requests = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** A stage calls this function alone. */
  readonly tick = async (): Promise<void> => {
    const version = this.#version;
    if (version === undefined) return;
    const { stage, truth, setting } = this.#world;
    const existing = (await stage.client.list(nodes)).items;
    const isAsked = (node: Node): boolean => updateOn(node)?.version === version;
    const open = NODES.flatMap((name) => {
      const node = existing.find(({ metadata }) => metadata.name === name);
      return node && !isOver(node, version) && (isAsked(node) || truth.runs.get(name) !== version)
        ? [node]
        : [];
    });
    const working = open.filter(isAsked).length;
    const free = Math.max(0, (setting.concurrent ?? 1) - working);
    for (const { metadata } of open.filter((node) => !isAsked(node)).slice(0, free))
      await requestUpdate(stage, metadata.name, version, `request-${++this.#requests}`, {
        owner: OWNER,
        nodes: NODES,
      });
  };

  async change(version: string | undefined): Promise<void> {
    this.#version = version;
    await this.tick();
  }
}

const CLUSTER_API = new WeakMap<World, ClusterApi>();

async function ask(world: World, version: string | undefined): Promise<void> {
  const known = CLUSTER_API.get(world);
  if (!known) throw new Error('the cluster is not open');
  await known.change(version);
}

export const MACHINES: DialectUnderTest = {
  name: 'Cluster API',
  module: capiModule,
  nodes: NODES,
  from: FROM,
  to: TO,
  isChosenElsewhere: true,
  open: async (world) => {
    const { stage, scenery } = world;
    for (const name of ['refit-system', 'fleet'])
      await stage.create(namespaces, { metadata: { name } });
    for (const node of NODES) await createMachine(world, node);
    const crew = await startCrew(scenery, extension);
    await stage.start(agentsIn(world, crew));
    const clusterApi = new ClusterApi(world);
    CLUSTER_API.set(world, clusterApi);
    await stage.start(async () => await Promise.resolve(clusterApi));
    return crew;
  },
  begin: async (world) => await ask(world, TO),
  planOf: () => `capi/fleet/${OWNER.name}`,
  deletePlan: async (world) => {
    // Cluster API withdraws an update only together with its Machine, whose Node goes, too.
    const [first] = NODES;
    await world.stage.client.delete(nodes, first);
    await ask(world, undefined);
  },
  join: createMachine,
  rollBack: async (world) => await ask(world, FROM),
};
