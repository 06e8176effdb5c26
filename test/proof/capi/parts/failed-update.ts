/**
 * Tests an update that its operator aborts. The update fails for good, keeps its target, and starts again when the
 * operator follows the guide.
 */
import { upgradePolicies } from '../../../../src/api/kinds.ts';
import { buildUpgradePolicy } from '../../../support/builders/policies.ts';
import { capiMachines, NAMESPACE, type ProofMachine, WORKERS } from '../machines/objects.ts';
import { conditionOf } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { moreCalls, refit } from './owners/policies.ts';
import { wantWorkers } from './update.ts';

const POLICY = 'hold';
const CALLS = 2;
const REASON = 'wrong release';

/**
 * Starts an update of the workers. A policy that wants an approval holds the update back: no worker gets the first
 * permission before `release` is called. Returns a Machine that waits. Other waits, such as a pause, do not let Cluster API
 * mark a Machine if its owner is a plan.
 */
export async function held(scene: Scene, version: string): Promise<ProofMachine> {
  const { client } = scene.cluster;
  await client.create(
    upgradePolicies,
    buildUpgradePolicy(POLICY, { plans: [{ dialect: 'capi' }], waves: [{ approval: 'Manual' }] }),
  );
  await wantWorkers(scene, { version });
  let waiting: ProofMachine | undefined;
  await scene.until('a worker that tells of the policy', async () => {
    const machines = await scene.machines('workers');
    waiting = machines.find((machine) =>
      conditionOf(machine, 'Updating')?.message?.includes(POLICY),
    );
    return waiting !== undefined;
  });
  if (waiting === undefined) throw new Error('no Machine waits');
  return waiting;
}

export async function release({ cluster: { client } }: Scene): Promise<void> {
  await client.delete(upgradePolicies, POLICY);
}

export async function failedUpdate(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  const isOfOwner = scene.options.rollouts === 'owner';
  const before = await scene.identities('workers');
  const version = scene.nextVersion();
  const machine = await held(scene, version);
  const { name } = machine.metadata;
  const node = machine.status?.nodeRef?.name ?? '';
  const plan = isOfOwner ? `capi/${NAMESPACE}/${WORKERS}` : `capi/${node}`;
  await checks.check('refit abort: the Machine says that its update was aborted', async () => {
    const told = await refit(scene, 'abort', '--plan', plan, '--reason', REASON);
    if (told.length > 0) return told;
    await release(scene);
    await scene.until('a Machine that tells of the end of its update', async () => {
      const now = await cluster.client.get(capiMachines, name, { namespace: NAMESPACE });
      const updating = conditionOf(now, 'Updating');
      // A Machine of an aborted owner has not failed. Its update goes on once its plan is started again.
      return isOfOwner
        ? updating?.message?.includes(REASON) === true
        : updating?.reason === 'InPlaceUpdateFailed';
    });
    return [];
  });
  const next = scene.nextVersion();
  await checks.check(
    'another version meanwhile: the Machine keeps its target, and is not replaced',
    async () => {
      await wantWorkers(scene, { version: next });
      if (isOfOwner) await moreCalls(scene, 'core', 'UpdateMachine', CALLS);
      else await scene.failedCalls('core', 'UpdateMachine', CALLS);
      const now = await cluster.client.get(capiMachines, name, { namespace: NAMESPACE });
      return [
        ...(now.spec.version === version ? [] : [`it wants ${now.spec.version}`]),
        ...(now.metadata.uid === machine.metadata.uid ? [] : ['it was replaced']),
      ];
    },
  );
  await checks.check(
    "after the guide's advice it starts again, and all workers end in place",
    async () => {
      const told = await refit(scene, 'retry', isOfOwner ? plan : name);
      if (told.length > 0) return told;
      await scene.settled('workers', next);
      return await scene.wrongAfter('workers', next, before);
    },
  );
}
