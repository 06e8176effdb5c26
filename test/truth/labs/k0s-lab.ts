/** Sequences with Plans of k0s: one controller, two workers, and agents that may be silent or fail. */
import { type Plan, plans } from '../../../src/api/autopilot/plan.ts';
import { ROLLS_BACK_ANNOTATION } from '../../../src/engine/model/earlier-versions.ts';
import { RESTART_ANNOTATION } from '../../../src/engine/model/runs.ts';
import { nodes } from '../../../src/kube/resources.ts';
import { ifFound } from '../../../src/kube/status-error.ts';
import { kubernetesPartOf } from '../../../src/versions/release-parts.ts';
import { pick } from '../../faults/random.ts';
import {
  agents,
  createK0sCluster,
  FROM,
  k0sController,
  presenceOf,
  worker,
} from '../../scenes/k0s.ts';
import { planWith, UPDATE } from '../../scenes/k0s-scene.ts';
import { agentStep, crewOperations, startCrew } from './crew.ts';
import { command, type Lab, type Operation, type Scenery } from './lab.ts';
import { lose, upgradeByHand } from './node-operations.ts';
import { policy, policyOperations } from './policies.ts';

const VERSIONS = ['v1.36.3+k0s.2', 'v1.36.4+k0s.0'] as const;
const WORKERS = ['w1', 'w2'] as const;
const PLAN = 'autopilot';

async function open(scenery: Scenery): Promise<void> {
  const { stage, truth } = scenery;
  await createK0sCluster(stage, 1, WORKERS.length);
  for (const name of ['c1', ...WORKERS]) truth.install(name, FROM);
  const crew = await startCrew(scenery, k0sController);
  await stage.start(agents(agentStep(scenery, crew), truth.runs));
  await stage.waitUntil(60);
  await stage.create(plans, planWith(UPDATE));
}

async function witness({ stage, truth }: Scenery): Promise<void> {
  const now = stage.clock.now();
  truth.noticeUpgrades(now);
  for (const { metadata, status } of (await stage.client.list(plans)).items) {
    const { uid = '', annotations = {} } = metadata;
    if (annotations[ROLLS_BACK_ANNOTATION] !== undefined && !truth.rollBacks.has(uid))
      truth.rollBacks.set(uid, now);
    const restarts = annotations[RESTART_ANNOTATION] === undefined ? 0 : 1;
    // k0s and Refit record the first state of a plan when they admit it.
    if (status?.state)
      truth.admitted.set(uid, Math.max(truth.admitted.get(uid) ?? 0, 1 + restarts));
  }
}

async function editPlan(
  scenery: Scenery,
  change: (spec: Plan['spec']) => Plan['spec'],
): Promise<void> {
  const { client } = scenery.stage;
  const plan = await ifFound(client.get(plans, PLAN));
  if (plan) await client.patch(plans, PLAN, { spec: change(plan.spec) }, { type: 'merge' });
}

function withVersion(spec: Plan['spec'], version: string): Plan['spec'] {
  return {
    ...spec,
    commands: spec.commands?.map(({ k0supdate, ...rest }) => ({
      ...rest,
      ...(k0supdate === undefined ? {} : { k0supdate: { ...k0supdate, version } }),
    })),
  };
}

let ids = 0;
function nextId(): string {
  return `edited-${++ids}`;
}

/** The file of the earlier version, which the lab has nowhere else. */
export const ROLL_BACK_FLAGS: readonly string[] = [
  '--url',
  'linux-amd64=https://example.com/k0s-old',
  '--sha256',
  `linux-amd64=${'cd'.repeat(32)}`,
];

const OPERATIONS: readonly Operation[] = [
  command('pause', 'pause', '--plan', PLAN),
  command('resume', 'resume', '--plan', PLAN),
  command('abort', 'abort', '--plan', PLAN, '--reason', 'bad release'),
  command('hold w1', 'hold', 'w1', '--reason', 'disk'),
  command('unhold w1', 'unhold', 'w1'),
  command('retry w1', 'retry', 'w1'),
  command('retry the skipped', 'retry', '--skipped'),
  command('approve wave 1', 'approve', PLAN, '--wave', '1'),
  command('approve wave 2', 'approve', PLAN, '--wave', '2'),
  command('accept the check', 'accept', '--plan', PLAN, '--check', 'shop', '--reason', 'known'),
  command('roll back', 'rollback', PLAN, ...ROLL_BACK_FLAGS, '--reason', 'bad', '--yes'),
  ...crewOperations(WORKERS),
  {
    name: 'the version is edited',
    act: async (scenery) =>
      await editPlan(scenery, (spec) => withVersion(spec, pick(scenery.random, VERSIONS))),
  },
  {
    name: 'the id is edited',
    act: async (scenery) => await editPlan(scenery, (spec) => ({ ...spec, id: nextId() })),
  },
  {
    name: 'version and id are edited',
    act: async (scenery) =>
      await editPlan(scenery, (spec) => ({ ...withVersion(spec, VERSIONS[1]), id: nextId() })),
  },
  {
    name: 'the plan is deleted',
    act: async ({ stage }) => {
      await ifFound(stage.client.delete(plans, PLAN));
    },
  },
  {
    name: 'the plan is applied again',
    act: async ({ stage }) => {
      if (!(await ifFound(stage.client.get(plans, PLAN))))
        await stage.create(plans, planWith(UPDATE));
    },
  },
  ...policyOperations('w1'),
  policy('an edit after the end restarts the plan', { edits: { afterEnd: 'Restart' } }),
  policy('a failed plan is rolled back', { onFailure: 'RollBack' }),
  lose('w2'),
  {
    name: 'w2 joins again',
    act: async ({ stage, truth }) => {
      if (!truth.lost.has('w2')) return;
      await stage.create(nodes, worker('w2', presenceOf(stage.clock.now())));
      truth.install('w2', FROM);
    },
  },
  upgradeByHand('w2', VERSIONS[1], kubernetesPartOf(VERSIONS[1])),
];

const FURTHER: readonly Operation[] = [
  {
    name: 'the version is edited to the newest',
    act: async (scenery) => await editPlan(scenery, (spec) => withVersion(spec, VERSIONS[1])),
  },
];

export const K0S_LAB: Lab = {
  dialect: 'k0s',
  hasRollBacks: true,
  seeds: [1, 25],
  open,
  witness,
  rollBackFlags: ROLL_BACK_FLAGS,
  operations: OPERATIONS,
  furtherOperations: FURTHER,
  spelled: (version) => version,
};
