/** A K3s cluster of the table: three agents, which a Plan of Rancher upgrades. Its server runs the new version already. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../../src/api/kinds.ts';
import { cattleModule } from '../../../src/dialects/cattle/module.ts';
import { cattle, cattleView } from '../../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../../src/dialects/cattle/plan/config.ts';
import { NODE_LABEL } from '../../../src/dialects/cattle/plan/names.ts';
import { jobs, namespaces, nodes, pods, secrets } from '../../../src/kube/resources.ts';
import { controllerOf } from '../../scenes/controller.ts';
import {
  createRancherNode,
  FROM,
  type JobEnd,
  jobRunner,
  k3sPlan,
  NAMESPACE,
} from '../../scenes/rancher.ts';
import type { Actor, Stage } from '../../scenes/stage.ts';
import type { CattleSpec } from '../../support/builders/cattle-plans.ts';
import { buildWorldOf } from '../../support/builders/worlds-of-kinds.ts';
import { type Crew, failureOn, startCrew } from '../../truth/labs/crew.ts';
import type { DialectUnderTest, World } from '../world.ts';

const NODES = ['a1', 'a2', 'a3'] as const;
const NAME = 'system-upgrade-controller';
const PLAN_NAME = 'k3s-agent';
const PLAN = `cattle/${NAMESPACE}/${PLAN_NAME}`;
const TO = 'v1.36.3+k3s1';
/** The seconds that a Job works. */
const JOB_SECONDS = 10;
/** The seconds after which Kubernetes deletes a Job that has ended, a shorter time than the default of the product. */
const JOB_LIFE_SECONDS = 60;
/** An image that can install an older version, which the image of a K3s Plan refuses. */
const ANY_K3S = 'registry.example.com/any-k3s';

function controllerIn({ setting: { leaderDrains = false } }: World): Actor {
  const ttlSecondsAfterFinish = JOB_LIFE_SECONDS;
  const job = { ...DEFAULT_JOB_SETTINGS, drainInJob: !leaderDrains, ttlSecondsAfterFinish };
  const config = { name: NAME, namespace: NAMESPACE, job, apiServerVersion: () => TO };
  return controllerOf({
    component: NAME,
    dialects: [cattle(config)],
    lease: { namespace: NAMESPACE, name: NAME },
    policies: 'if-allowed',
  });
}

function endIn(world: World, crew: Crew): JobEnd {
  return (node) => {
    if (crew.silent.has(node)) return 'forever';
    if (failureOn(world.scenery, crew, node) !== undefined) return { seconds: 0, result: 'failed' };
    return { seconds: JOB_SECONDS, result: world.stuck.has(node) ? 'nothing' : 'installed' };
  };
}

/** Tells the world of each Job that works on a node. */
function witness(world: World): Actor {
  const tick = async (): Promise<void> => {
    for (const { metadata } of (await world.stage.client.list(jobs)).items) {
      const node = metadata.labels?.[NODE_LABEL];
      if (node !== undefined) world.noteStart(node, metadata.uid ?? '');
    }
  };
  return async () => await Promise.resolve({ tick });
}

async function createNode({ stage, truth }: World, name: string): Promise<void> {
  await createRancherNode(stage, name);
  truth.install(name, FROM);
}

/**
 * Returns the Plan with a service account whose name makes the order of the nodes the order of their names. The order looks
 * random, and follows from the uid and the hash of the Plan.
 */
async function inOrder(stage: Stage, spec: Partial<CattleSpec>, uid: string): Promise<CattlePlan> {
  const none = [cattlePlans, jobs, pods, secrets].map((kind) => [kind, []] as const);
  const world = buildWorldOf([nodes, (await stage.client.list(nodes)).items], ...none);
  for (let number = 0; number < 100; number++) {
    const plan = k3sPlan('agent', { ...spec, serviceAccountName: `upgrade-${number}` });
    // The server runs the new version already, so nothing has to wait for it.
    delete plan.spec?.prepare;
    const created = { ...plan, metadata: { ...plan.metadata, uid } };
    const { stages } = cattleView.resolve(created, world, stage.clock.now());
    const names = stages.flatMap(({ targets }) => targets.map(({ name }) => name));
    if (names.join() === NODES.join()) return plan;
  }
  throw new Error('no service account gives this order');
}

/** Creates the Plan, whose uid nobody knows before. No leader sees the Plan before it has its order. */
async function createAndOrder(world: World, spec: Partial<CattleSpec>): Promise<void> {
  const { stage } = world;
  await world.killLeader();
  await stage.create(cattlePlans, k3sPlan('agent', spec));
  const created = await stage.client.get(cattlePlans, PLAN_NAME, { namespace: NAMESPACE });
  const plan = await inOrder(stage, spec, created.metadata.uid ?? '');
  const ordered = { ...plan, metadata: created.metadata };
  await stage.client.replace(cattlePlans, ordered, { namespace: NAMESPACE });
  await world.startLeader();
}

export const RANCHER: DialectUnderTest = {
  name: 'system-upgrade-controller',
  module: cattleModule,
  nodes: NODES,
  from: FROM,
  to: TO,
  open: async (world) => {
    const { stage, truth, scenery } = world;
    await stage.create(namespaces, { metadata: { name: NAMESPACE } });
    for (const name of NODES) await createNode(world, name);
    const crew = await startCrew(scenery, controllerIn(world));
    await stage.start(witness(world));
    await stage.start(jobRunner(endIn(world, crew), truth.runs));
    return crew;
  },
  begin: async (world) => {
    const { stage, setting } = world;
    const { concurrent = 1, leaderDrains = false } = setting;
    const spec = { concurrency: concurrent, ...(leaderDrains ? { drain: {} } : {}) };
    const { nextUid } = stage;
    if (nextUid !== undefined) await stage.create(cattlePlans, await inOrder(stage, spec, nextUid));
    else await createAndOrder(world, spec);
  },
  planOf: () => PLAN,
  deletePlan: async ({ stage }) => {
    const options = { namespace: NAMESPACE };
    await stage.client.delete(cattlePlans, PLAN_NAME, options);
    for (const { metadata } of (await stage.client.list(jobs, options)).items)
      await stage.client.delete(jobs, metadata.name, {
        ...options,
        propagationPolicy: 'Background',
      });
  },
  join: createNode,
  rollBack: async (world) => {
    await world.refit('rollback', PLAN, '--image', ANY_K3S, '--reason', 'bad', '--yes');
  },
};
