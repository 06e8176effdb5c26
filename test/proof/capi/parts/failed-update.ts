/**
 * Tests an update that its operator aborts. The update fails for good, keeps its target, and starts again when the
 * operator follows the guide.
 */
import { upgradePolicies } from '../../../../src/api/kinds.ts';
import { UPDATE_ANNOTATION } from '../../../../src/dialects/capi/plan/machine-update.ts';
import { nodes } from '../../../../src/kube/resources.ts';
import { run } from '../../../../tools/controlplane/run.ts';
import { buildUpgradePolicy } from '../../../support/builders/policies.ts';
import { capiMachines, NAMESPACE, type ProofMachine } from '../machines/objects.ts';
import { conditionOf } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { wantWorkers } from './update.ts';

const POLICY = 'hold';
const FAILED_CALLS = 2;

/**
 * Starts an update of the workers. A paused policy holds the update back: no worker gets the first permission before
 * `release` is called. Returns a Machine that waits.
 */
export async function held(scene: Scene, version: string): Promise<ProofMachine> {
  const { client } = scene.cluster;
  await client.create(
    upgradePolicies,
    buildUpgradePolicy(POLICY, { plans: [{ dialect: 'capi' }], paused: true }),
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
  const { checks, cluster, kubeconfig, options } = scene;
  const before = await scene.identities('workers');
  const version = scene.nextVersion();
  const machine = await held(scene, version);
  const { name } = machine.metadata;
  const node = machine.status?.nodeRef?.name ?? '';
  await checks.check('refit abort: the Machine says that its update failed', async () => {
    const plan = [
      '--plan',
      `capi/${node}`,
      '--reason',
      'wrong release',
      '--kubeconfig',
      kubeconfig,
    ];
    const told = await run(options.refit, ['abort', ...plan]);
    if (!told.ok) return [told.stderr];
    await release(scene);
    await scene.until('reason InPlaceUpdateFailed', async () => {
      const now = await cluster.client.get(capiMachines, name, { namespace: NAMESPACE });
      return conditionOf(now, 'Updating')?.reason === 'InPlaceUpdateFailed';
    });
    return [];
  });
  const next = scene.nextVersion();
  await checks.check(
    'another version meanwhile: the Machine keeps its target, and is not replaced',
    async () => {
      await wantWorkers(scene, { version: next });
      await scene.failedCalls('core', 'UpdateMachine', FAILED_CALLS);
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
      const annotations = { [UPDATE_ANNOTATION]: null };
      await cluster.client.patch(nodes, node, { metadata: { annotations } }, { type: 'merge' });
      await scene.settled('workers', next);
      return await scene.wrongAfter('workers', next, before);
    },
  );
}
