/** Sequences with an upgrade of kubeadm hosts: one control-plane host and two workers. */
import { kubeadmDialect } from '../../../src/dialects/kubeadm/plan/kubeadm-dialect.ts';
import {
  newPlan,
  openRequest,
  PLACE,
  readRecord,
} from '../../../src/dialects/kubeadm/plan/plan-object.ts';
import { configMaps } from '../../../src/kube/resources.ts';
import { ifFound } from '../../../src/kube/status-error.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { controllerOf } from '../../scenes/controller.ts';
import { createHost, FROM, TO } from '../../scenes/kubeadm-scenes.ts';
import type { Actor } from '../../scenes/stage.ts';
import { crewOperations, startCrew } from './crew.ts';
import { command, type Lab, type Operation, type Scenery } from './lab.ts';
import { lose, upgradeByHand } from './node-operations.ts';
import { policyOperations } from './policies.ts';
import { VirtualHosts } from './virtual-hosts.ts';

const HOSTS = ['cp1', 'w1', 'w2'] as const;
const PLAN = `kubeadm/${PLACE.namespace}/${PLACE.name}`;
const BY_HAND = 'v1.36.4';

/** `refit kubeadm apply` is the leader. If it ends, its work on the hosts ends, too. */
export function applyOn(hosts: VirtualHosts): Actor {
  const leader = controllerOf({
    component: 'refit-kubeadm',
    dialects: [kubeadmDialect(hosts)],
    lease: PLACE,
  });
  return async (parts) => {
    const running = await leader(parts);
    return {
      stop: async () => {
        hosts.forget();
        await running.stop?.();
      },
    };
  };
}

interface PlanOptions {
  /** True for the way back. */
  readonly isBack?: boolean;
  readonly concurrent?: number;
  readonly workers?: readonly string[];
}

/** Creates the plan of an upgrade, or of the way back. Its first host is cp1. */
export async function createPlan(
  { stage }: Pick<Scenery, 'stage'>,
  { isBack = false, concurrent = 1, workers = ['w1', 'w2'] }: PlanOptions = {},
): Promise<void> {
  const created = rfc3339(stage.clock.now());
  const common = { concurrent, certificates: [], followers: [], kubelets: [] };
  const request = isBack
    ? ({ version: FROM, back: true, ...common } as const)
    : { version: TO, ...common };
  const names = { leader: ['cp1'], workers: [...workers] };
  const run = { uid: `run-at-${created}`, created };
  await stage.create(configMaps, newPlan({ ...request, ...names }, created, run));
}

async function open(scenery: Scenery): Promise<void> {
  const { stage, truth } = scenery;
  for (const name of HOSTS) {
    await createHost(stage, name, FROM);
    truth.install(name, FROM);
  }
  const hosts = new VirtualHosts(scenery);
  const crew = await startCrew(scenery, applyOn(hosts));
  await stage.start(
    async () => await Promise.resolve({ tick: async () => await hosts.tick(crew) }),
  );
  await stage.waitUntil(60);
  await createPlan(scenery);
}

async function witness({ stage, truth }: Scenery): Promise<void> {
  truth.noticeUpgrades(stage.clock.now());
  const { name, namespace } = PLACE;
  const plan = await ifFound(stage.client.get(configMaps, name, { namespace }));
  const uid = plan?.data?.['uid'];
  if (plan && uid !== undefined && readRecord(plan).recorded !== undefined)
    truth.admitted.set(uid, 1);
}

const OPERATIONS: readonly Operation[] = [
  command('pause', 'pause', '--plan', PLAN),
  command('resume', 'resume', '--plan', PLAN),
  command('abort', 'abort', '--plan', PLAN, '--reason', 'bad release'),
  command('hold w1', 'hold', 'w1', '--reason', 'disk'),
  command('unhold w1', 'unhold', 'w1'),
  command('retry w1', 'retry', 'w1'),
  command('approve wave 2', 'approve', PLAN, '--wave', '2'),
  command('accept the check', 'accept', '--plan', PLAN, '--check', 'shop', '--reason', 'known'),
  command('roll back', 'rollback', PLAN, '--reason', 'bad', '--yes'),
  ...crewOperations(HOSTS),
  ...policyOperations('w1'),
  {
    name: 'the plan is deleted',
    act: async ({ stage }) => {
      const { name, namespace } = PLACE;
      await ifFound(stage.client.delete(configMaps, name, { namespace }));
    },
  },
  {
    name: 'refit kubeadm apply begins again',
    act: async (scenery) => {
      const { name, namespace } = PLACE;
      const { client } = scenery.stage;
      if (!(await ifFound(client.get(configMaps, name, { namespace })))) await createPlan(scenery);
    },
  },
  lose('w2'),
  upgradeByHand('w2', BY_HAND),
];

const FURTHER: readonly Operation[] = [
  {
    name: 'refit kubeadm apply --back begins',
    act: async (scenery) => {
      const { name, namespace } = PLACE;
      const { client } = scenery.stage;
      await ifFound(client.delete(configMaps, name, { namespace }));
      await createPlan(scenery, { isBack: true });
    },
  },
  {
    // The command replaces the record of a plan that has ended, and continues any other plan.
    name: 'refit kubeadm apply begins anew',
    act: async (scenery) => {
      const { name, namespace } = PLACE;
      const { client } = scenery.stage;
      const plan = await ifFound(client.get(configMaps, name, { namespace }));
      if (openRequest(plan) !== undefined) return;
      if (plan !== undefined) await client.delete(configMaps, name, { namespace });
      await createPlan(scenery);
    },
  },
];

export const KUBEADM_LAB: Lab = {
  dialect: 'kubeadm',
  seeds: [11],
  open,
  witness,
  byHand: {
    'refit kubeadm apply': 'refit kubeadm apply begins anew',
    'refit kubeadm apply --back': 'refit kubeadm apply --back begins',
  },
  operations: OPERATIONS,
  furtherOperations: FURTHER,
  spelled: (version) => version,
};
