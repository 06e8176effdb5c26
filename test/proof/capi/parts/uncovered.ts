/**
 * Tests a change that no updater covers. Cluster API replaces the Machines by default. An UpdaterSet can make Refit
 * refuse the change.
 */
import type { UpdaterSet } from '../../../../src/api/refit/updater-set.ts';
import { updaterSets } from '../../../../src/api/refit/updater-set.ts';
import {
  bootstrapTemplate,
  CLUSTER,
  controlPlanes,
  machineSets,
  NAMESPACE,
  WORKERS,
} from '../machines/objects.ts';
import { conditionOf } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { wantControlPlane, wantWorkers } from './update.ts';

const NAME = 'in-place';
/** The number of failed calls to wait for. More calls would show nothing new, because the answer stays the same. */
const REPEATED = 2;

export async function uncovered(scene: Scene): Promise<void> {
  await replaced(scene);
  await useUpdaters(scene, { uncovered: 'Refuse', updaters: [{ name: 'refit', refit: {} }] });
  await refusedOfWorkers(scene);
  await refusedOfControlPlane(scene);
  await scene.cluster.client.delete(updaterSets, NAME);
}

export async function useUpdaters(scene: Scene, spec: UpdaterSet['spec']): Promise<void> {
  await scene.apply({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpdaterSet',
    metadata: { name: NAME },
    spec,
  });
}

/** Adds this file to what the workers must have. Returns the name of the template that the workers used before. */
export async function wantFile(scene: Scene, path: string, more: object = {}): Promise<string> {
  const [machine] = await scene.machines('workers');
  const name = `${WORKERS}${path.replaceAll('/', '-')}`;
  await scene.apply(bootstrapTemplate(name, [{ path, content: 'two' }]));
  const before =
    (await newest(scene)).spec.template?.spec.bootstrap?.configRef?.name ??
    machine?.metadata.name ??
    '';
  await wantTemplate(scene, name, more);
  return before;
}

export async function wantTemplate(scene: Scene, name: string, more: object = {}): Promise<void> {
  await wantWorkers(scene, { bootstrap: { configRef: { name } }, ...more });
}

/** The MachineSet that has the Machines. */
async function newest({ cluster }: Scene) {
  const { items } = await cluster.client.listAll(machineSets, { namespace: NAMESPACE });
  const found = items.find(
    ({ metadata, spec }) => metadata.name.startsWith(WORKERS) && spec.replicas !== 0,
  );
  if (found === undefined) throw new Error(`no MachineSet of ${WORKERS} has Machines`);
  return found;
}

export async function setsOf({ cluster }: Scene): Promise<number> {
  const { items } = await cluster.client.listAll(machineSets, { namespace: NAMESPACE });
  return items.filter(({ metadata }) => metadata.name.startsWith(WORKERS)).length;
}

async function replaced(scene: Scene): Promise<void> {
  const before = await scene.identities('workers');
  const version = await versionOfWorkers(scene);
  const others = await scene.identities('control plane');
  await scene.checks.check(
    'a file that nobody covers: both workers are replaced, and no other Machine',
    async () => {
      await wantFile(scene, '/etc/replaced');
      await scene.until('two other Machines', async () =>
        (await scene.machines('workers')).every(({ metadata }) => !before.has(metadata.name)),
      );
      await scene.settled('workers', version);
      const kept = [...(await scene.identities('workers')).keys()].filter((name) =>
        before.has(name),
      );
      const same =
        JSON.stringify([...(await scene.identities('control plane'))]) ===
        JSON.stringify([...others]);
      return [
        ...kept.map((name) => `${name} is still there`),
        ...(same ? [] : ['the control plane changed, too']),
      ];
    },
  );
}

export async function versionOfWorkers(scene: Scene): Promise<string> {
  return (await newest(scene)).spec.template?.spec.version ?? '';
}

async function refusedOfWorkers(scene: Scene): Promise<void> {
  const { checks } = scene;
  const before = await scene.identities('workers');
  const version = await versionOfWorkers(scene);
  const sets = await setsOf(scene);
  const template = await wantFile(scene, '/etc/refused');
  await checks.check(
    'Refuse: no worker is replaced, and the UpdaterSet says which change is not covered',
    async () => {
      await scene.failedCalls('core', 'CanUpdateMachineSet', REPEATED);
      const message = await refusal(scene);
      const wrong = await scene.wrongAfter('workers', version, before);
      return [
        ...(message.includes('bootstrap.spec.files')
          ? []
          : [`the condition Covered says "${message}"`]),
        ...((await setsOf(scene)) === sets ? [] : ['there is a new MachineSet']),
        ...wrong,
      ];
    },
  );
  await checks.check('Refuse, and the change is undone: all goes on', async () => {
    await wantTemplate(scene, template);
    await scene.settled('workers', version);
    return await scene.wrongAfter('workers', version, before);
  });
}

async function refusedOfControlPlane(scene: Scene): Promise<void> {
  const { checks } = scene;
  const before = await scene.identities('control plane');
  const [machine] = await scene.machines('control plane');
  const version = machine?.spec.version ?? '';
  const { spec } = await scene.cluster.client.get(controlPlanes, CLUSTER, { namespace: NAMESPACE });
  const { files = null } = spec.kubeadmConfigSpec ?? {};
  await wantControlPlane(scene, {
    kubeadmConfigSpec: { files: [{ path: '/etc/refused', content: 'two' }] },
  });
  await checks.check('Refuse: no Machine of the control plane is replaced', async () => {
    await scene.failedCalls('control-plane', 'CanUpdateMachine', REPEATED);
    return await scene.wrongAfter('control plane', version, before);
  });
  await checks.check(
    'Refuse, and the change of the control plane is undone: all goes on',
    async () => {
      await wantControlPlane(scene, { kubeadmConfigSpec: { files } });
      await scene.settled('control plane', version);
      return await scene.wrongAfter('control plane', version, before);
    },
  );
}

async function refusal({ cluster }: Scene): Promise<string> {
  const covered = conditionOf(await cluster.client.get(updaterSets, NAME), 'Covered');
  return covered?.status === 'False' ? (covered.message ?? '') : `Covered is ${covered?.status}`;
}
