/** A k0s cluster of the table: one controller, which a Plan upgrades first, and three workers. */
import { plans } from '../../../src/api/autopilot/plan.ts';
import { autopilotModule } from '../../../src/dialects/autopilot/module.ts';
import { leases, nodes } from '../../../src/kube/resources.ts';
import {
  createK0sCluster,
  FROM,
  k0sController,
  nodeLease,
  presenceOf,
  worker,
} from '../../scenes/k0s.ts';
import { label, planWith } from '../../scenes/k0s-scene.ts';
import { buildUpdate, listed, selected } from '../../support/builders/plans.ts';
import { startCrew } from '../../truth/labs/crew.ts';
import { ROLL_BACK_FLAGS } from '../../truth/labs/k0s-lab.ts';
import type { DialectUnderTest } from '../world.ts';
import { agentsIn } from './agents.ts';

const NODES = ['w1', 'w2', 'w3'] as const;
const PLAN = 'autopilot';
const POOL = { pool: 'scene' } as const;
const TO = buildUpdate().version;

export const K0S: DialectUnderTest = {
  name: 'k0s',
  module: autopilotModule,
  nodes: NODES,
  from: FROM,
  to: TO,
  open: async (world) => {
    const { stage, truth, scenery } = world;
    await createK0sCluster(stage, 1, NODES.length);
    for (const name of NODES) {
      await label(stage, name, POOL);
      truth.install(name, FROM);
    }
    const crew = await startCrew(scenery, k0sController);
    await stage.start(agentsIn(world, crew));
    return crew;
  },
  begin: async ({ stage, setting: { concurrent = 1 } }) => {
    const workers = { ...selected('pool=scene'), limits: { concurrent } };
    await stage.create(plans, planWith({ targets: { controllers: listed('c1'), workers } }));
  },
  planOf: () => PLAN,
  deletePlan: async ({ stage }) => {
    await stage.client.delete(plans, PLAN);
  },
  join: async ({ stage, truth }, node) => {
    await stage.create(nodes, worker(node, presenceOf(stage.clock.now())));
    await stage.create(leases, nodeLease(node));
    await label(stage, node, POOL);
    truth.install(node, FROM);
  },
  rollBack: async (world) => {
    await world.refit('rollback', PLAN, ...ROLL_BACK_FLAGS, '--reason', 'bad', '--yes');
  },
};
