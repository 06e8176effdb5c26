/**
 * Tests that the Machines of one MachineDeployment are one plan: ten Machines share their waves and approvals, the hooks of
 * the plan, and the failure budget.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeRollouts, upgradePolicies } from '../../../../../src/api/kinds.ts';
import { HOOK_LABEL } from '../../../../../src/drain/own-pods.ts';
import { type Job, jobs } from '../../../../../src/kube/resources.ts';
import { rfc3339, systemClock } from '../../../../../src/util/clock.ts';
import { applyManifest } from '../../../../../tools/controlplane/apply.ts';
import { NAMESPACE, type ProofMachine, WORKERS } from '../../machines/objects.ts';
import { conditionOf, IN_PROGRESS } from '../../machines/settled.ts';
import type { Identity, Scene } from '../../scene.ts';
import { scaled } from '../sizes.ts';
import { wantWorkers } from '../update.ts';
import { moreCalls, refit, startedSince, usePolicy } from './policies.ts';

const TEN = 10;
const ONE_BY_ONE = { maxSurge: 0, maxUnavailable: 1 };
const BY_THREE = { maxSurge: 0, maxUnavailable: 3 };
const PLAN = `capi/${NAMESPACE}/${WORKERS}`;
/** The first of these calls may have been sent before, so the manager has asked for the waiting Machine again. */
const MORE_CALLS = 2;

export async function onePlan(scene: Scene): Promise<void> {
  await scaled(scene, TEN, ONE_BY_ONE);
  await approvedWave(scene);
  await scaled(scene, TEN, BY_THREE);
  await hookOfPlan(scene);
  await failedMachine(scene);
  await scaled(scene, 2, ONE_BY_ONE);
}

async function approvedWave(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  const before = await scene.identities('workers');
  const starts = scene.starts(before.keys());
  const version = scene.nextVersion();
  await usePolicy(scene, 'waves', WORKERS, {
    waves: [{ percent: TEN }, { approval: 'Manual' }],
  });
  await checks.check(
    'a first wave of 10 % of ten Machines: one is updated, and no other one before the approval',
    async () => {
      await wantWorkers(scene, { version });
      await toldBySome(scene, /approv/i);
      await moreCalls(scene, 'core', 'UpdateMachine', MORE_CALLS);
      const started = startedSince(scene, starts);
      return [
        ...(started.length === 1 ? [] : [`these were started: ${started.join(', ') || 'none'}`]),
        ...(await replacedSince(scene, before)),
        ...(await otherPlans(scene)),
      ];
    },
  );
  await checks.check('the second wave is approved: all ten Machines end in place', async () => {
    const told = await refit(scene, 'approve', PLAN, '--wave', '2', '--reason', 'it works');
    if (told.length > 0) return told;
    await scene.settled('workers', version, TEN);
    return await scene.wrongAfter('workers', version, before);
  });
  await cluster.client.delete(upgradePolicies, 'waves');
}

async function hookOfPlan(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  const rights = join(import.meta.dirname, '../../../../../deploy/rbac-hooks.yaml');
  await applyManifest(scene.kubeconfig, await readFile(rights, 'utf8'));
  const before = await scene.identities('workers');
  const starts = scene.starts(before.keys());
  const version = scene.nextVersion();
  const container = { name: 'hook', image: 'registry.example/hook:1' };
  const job = { namespace: HOOKS, template: { spec: { containers: [container] } } };
  await usePolicy(scene, 'hooks', WORKERS, {
    hooks: [{ name: HOOK, when: 'BeforePlan', timeout: '10m', job }],
  });
  await checks.check(
    'a hook before the plan: one Job for ten Machines, and none starts before it has ended',
    async () => {
      await wantWorkers(scene, { version });
      await scene.until('the Job of the hook', async () => (await hookJobs(scene)).length > 0);
      await toldBySome(scene, new RegExp(HOOK));
      await moreCalls(scene, 'core', 'UpdateMachine', MORE_CALLS);
      return startedSince(scene, starts).map((name) => `${name} has started`);
    },
  );
  await checks.check('the hook has ended: all ten end in place, without another Job', async () => {
    for (const each of await hookJobs(scene)) await complete(scene, each);
    await scene.settled('workers', version, TEN);
    const { length } = await hookJobs(scene);
    const wrong = await scene.wrongAfter('workers', version, before);
    return length === 1 ? wrong : [`there are ${length} Jobs`, ...wrong];
  });
  await cluster.client.delete(upgradePolicies, 'hooks');
}

const HOOKS = 'refit-hooks';
const HOOK = 'freeze';

async function hookJobs({ cluster }: Scene): Promise<Job[]> {
  const labelSelector = `${HOOK_LABEL}=${HOOK}`;
  return (await cluster.client.listAll(jobs, { namespace: HOOKS, labelSelector })).items;
}

/** Ends the Job as the Job controller would, which does not run here. */
async function complete({ cluster }: Scene, { metadata: { name } }: Job): Promise<void> {
  const now = rfc3339(systemClock.now());
  const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) => ({ type, status: 'True' }));
  const status = { startTime: now, completionTime: now, succeeded: 1, conditions };
  const options = { type: 'merge', namespace: HOOKS, subresource: 'status' } as const;
  await cluster.client.patch(jobs, name, { status }, options);
}

/**
 * Tests a Machine whose agent gets damaged files. Cluster API takes Machines with the same priority in the order of their
 * names, so the first three include this one.
 */
async function failedMachine(scene: Scene): Promise<void> {
  const { checks, badDownloads } = scene;
  const before = await scene.identities('workers');
  const starts = scene.starts(before.keys());
  const [bad = ''] = [...before.keys()].toSorted();
  const version = scene.nextVersion();
  badDownloads.push(bad);
  await checks.check(
    'three Machines at once, and one fails: Cluster API asks for others, but none of them starts',
    async () => {
      await wantWorkers(scene, { version });
      await scene.until('a Machine whose update failed', async () =>
        (await marked(scene)).some(
          (machine) =>
            machine.metadata.name === bad &&
            conditionOf(machine, 'Updating')?.reason === 'InPlaceUpdateFailed',
        ),
      );
      // The Machines that had started before the failure end their update. Then others take their places.
      await scene.until('two Machines that wait because of the one that failed', async () => {
        const waiting = (await marked(scene)).filter(
          (machine) =>
            machine.metadata.name !== bad &&
            conditionOf(machine, 'Updating')?.message?.includes(bad),
        );
        return waiting.length === BY_THREE.maxUnavailable - 1;
      });
      const started = startedSince(scene, starts);
      await moreCalls(scene, 'core', 'UpdateMachine', MORE_CALLS);
      const later = startedSince(scene, starts).filter((name) => !started.includes(name));
      const most = BY_THREE.maxUnavailable - 1;
      return [
        ...later.map((name) => `${name} has started after the failure`),
        ...(started.length <= most ? [] : [`these were started: ${started.join(', ')}`]),
        ...(await replacedSince(scene, before)),
        ...(await otherPlans(scene)),
      ];
    },
  );
  await checks.check('it is tried again with good files: all ten end in place', async () => {
    badDownloads.splice(badDownloads.indexOf(bad), 1);
    const told = await refit(scene, 'retry', bad, '--plan', PLAN);
    if (told.length > 0) return told;
    await scene.settled('workers', version, TEN);
    return await scene.wrongAfter('workers', version, before);
  });
}

async function marked(scene: Scene): Promise<ProofMachine[]> {
  const machines = await scene.machines('workers');
  return machines.filter(({ metadata }) => metadata.annotations?.[IN_PROGRESS] !== undefined);
}

/** Waits until the condition of a Machine that is marked contains this. */
async function toldBySome(scene: Scene, what: RegExp): Promise<void> {
  await scene.until(`a Machine that tells of ${what}`, async () =>
    (await marked(scene)).some((machine) =>
      what.test(conditionOf(machine, 'Updating')?.message ?? ''),
    ),
  );
}

async function replacedSince(
  scene: Scene,
  before: ReadonlyMap<string, Identity>,
): Promise<string[]> {
  const uids = new Set((await scene.machines('workers')).map(({ metadata }) => metadata.uid));
  return [...before].flatMap(([name, { uid }]) => (uids.has(uid) ? [] : [`${name} was replaced`]));
}

/** Returns what is wrong if the workers have another NodeRollout than the one of their owner. */
async function otherPlans({ cluster }: Scene): Promise<string[]> {
  const { items } = await cluster.client.listAll(nodeRollouts, { namespace: NAMESPACE });
  const names = items.map(({ metadata }) => metadata.name).filter((name) => name.includes(WORKERS));
  return names.join() === `capi-${WORKERS}` ? [] : [`the NodeRollouts are ${names.join(', ')}`];
}
