/** A kubeadm cluster of the table: one control-plane host, which is upgraded first, and three workers. */
import { kubeadmModule } from '../../../src/dialects/kubeadm/module.ts';
import type { HostUpgrade } from '../../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { PLACE } from '../../../src/dialects/kubeadm/plan/plan-object.ts';
import { configMaps } from '../../../src/kube/resources.ts';
import { ifFound } from '../../../src/kube/status-error.ts';
import { createHost, FROM, TO } from '../../scenes/kubeadm-scenes.ts';
import { startCrew } from '../../truth/labs/crew.ts';
import { applyOn, createPlan } from '../../truth/labs/kubeadm-lab.ts';
import { VirtualHosts } from '../../truth/labs/virtual-hosts.ts';
import type { DialectUnderTest, World } from '../world.ts';

const NODES = ['w1', 'w2', 'w3'] as const;
const { name: NAME, namespace: NAMESPACE } = PLACE;
const PLAN = `kubeadm/${NAMESPACE}/${NAME}`;

/** Hosts that tell the world of each attempt. */
class SeenHosts extends VirtualHosts {
  readonly #world: World;

  constructor(world: World) {
    super(world.scenery, world.stuck);
    this.#world = world;
  }

  override async begin(order: HostUpgrade): Promise<void> {
    const { name, since } = order.target;
    this.#world.noteStart(name, `${name} ${since}`);
    await super.begin(order);
  }
}

async function begin({ stage, setting }: World, isBack = false): Promise<void> {
  await createPlan({ stage }, { isBack, concurrent: setting.concurrent ?? 1, workers: NODES });
}

export const KUBEADM: DialectUnderTest = {
  name: 'kubeadm',
  module: kubeadmModule,
  nodes: NODES,
  from: FROM,
  to: TO,
  open: async (world) => {
    const { stage, truth, scenery } = world;
    for (const name of ['cp1', ...NODES]) await createHost(stage, name, FROM);
    for (const name of NODES) truth.install(name, FROM);
    const hosts = new SeenHosts(world);
    const crew = await startCrew(scenery, applyOn(hosts));
    const tick = async (): Promise<void> => await hosts.tick(crew);
    await stage.start(async () => await Promise.resolve({ tick }));
    return crew;
  },
  begin,
  planOf: () => PLAN,
  deletePlan: async ({ stage }) => {
    await stage.client.delete(configMaps, NAME, { namespace: NAMESPACE });
  },
  join: async ({ stage, truth }, node) => {
    await createHost(stage, node, FROM);
    truth.install(node, FROM);
  },
  rollBack: async (world) => {
    await ifFound(world.stage.client.delete(configMaps, NAME, { namespace: NAMESPACE }));
    await begin(world, true);
  },
};
