/** Tests `refit upgrade` for Clusters of Cluster API, whose management cluster is an API server in memory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startSandboxPlane } from '../../../../sandbox/cluster/plane.ts';
import { defineKinds } from '../../../../test/support/ready/define-kinds.ts';
import { runUpgrade } from '../../../../test/support/upgrade-cluster.ts';
import {
  CLUSTER_NAME,
  CONTROL_PLANE_LABEL,
  clusters,
  machineDeployments,
  machines,
  SET_LABELS,
} from '../../../api/capi/machine.ts';
import type { UpgradeDraft, UpgradeFlags } from '../../../cli/contract/upgrade-way.ts';
import { plainOutput } from '../../../cli/output.ts';
import type { Session } from '../../../cli/status/status-session.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { loadClusterConfig } from '../../../kube/config/kubeconfig.ts';
import {
  apiVersionOf,
  type KubeObject,
  namespaced,
  type Resource,
} from '../../../kube/resources.ts';
import { ifFound } from '../../../kube/status-error.ts';
import { createClient } from '../../../kube/transport/http-client.ts';
import { systemClock } from '../../../util/clock.ts';
import { MODULES } from '../../modules.ts';
import { upgradeMachines } from './upgrade-machines.ts';

const OLD = 'v1.36.2';
const NEW = 'v1.36.3';
const namespace = 'default';
const controlPlanes = namespaced('controlplane.cluster.x-k8s.io/v1beta2', 'KubeadmControlPlane');
const KINDS: readonly Resource[] = [clusters, machines, machineDeployments, controlPlanes];
const things = new AsyncDisposableStack();
let client: KubeClient;
let kubeconfig = '';

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-upgrade-'));
  things.defer(async () => await rm(folder, { recursive: true }));
  const plane = await startSandboxPlane(folder);
  things.defer(async () => await plane.stop());
  kubeconfig = await plane.kubeconfig('admin');
  client = things.use(createClient(await loadClusterConfig({ path: kubeconfig })));
  const defined = KINDS.map(
    ({ group, version, kind, plural }) => [group, version, kind, plural] as const,
  );
  await defineKinds(client, new AbortController().signal, defined);
});

afterAll(async () => await things.disposeAsync());

beforeEach(async () => {
  for (const resource of KINDS)
    for (const { metadata } of (await client.listAll(resource)).items)
      await ifFound(client.delete(resource, metadata.name, { namespace }));
});

async function put(
  resource: Resource,
  name: string,
  spec: object,
  more: object = {},
): Promise<KubeObject> {
  const { kind } = resource;
  const object = { apiVersion: apiVersionOf(resource), kind, metadata: { name, ...more }, spec };
  return await client.create(resource, object, { namespace });
}

const OF_BLUE = { [CLUSTER_NAME]: 'blue' };

/** Puts the Cluster `blue` with one control-plane Machine and one worker. `made` are the versions of the Machines. */
async function putBlue(plane: string, workers: string, made: readonly string[] = [plane, workers]) {
  const controlPlaneRef = { apiGroup: controlPlanes.group, kind: controlPlanes.kind, name: 'cp' };
  await put(clusters, 'blue', { controlPlaneRef });
  const { metadata } = await put(controlPlanes, 'cp', { version: plane }, { labels: OF_BLUE });
  const [ofPlane, ofWorkers] = made;
  const owner = {
    apiVersion: apiVersionOf(controlPlanes),
    kind: controlPlanes.kind,
    name: 'cp',
    uid: metadata.uid,
    controller: true,
  };
  await put(
    machines,
    'cp-1',
    { clusterName: 'blue', version: ofPlane },
    { labels: { ...OF_BLUE, [CONTROL_PLANE_LABEL]: '' }, ownerReferences: [owner] },
  );
  await put(
    machineDeployments,
    'md',
    { template: { spec: { version: workers } } },
    { labels: OF_BLUE },
  );
  await put(
    machines,
    'md-1',
    { clusterName: 'blue', version: ofWorkers },
    { labels: { ...OF_BLUE, [SET_LABELS.deployment]: 'md' } },
  );
}

const versions = async (): Promise<readonly unknown[]> => {
  const plane = await client.get(controlPlanes, 'cp', { namespace });
  const workers = await client.get(machineDeployments, 'md', { namespace });
  return [
    (plane as { spec?: { version?: string } }).spec?.version,
    workers.spec?.template?.spec?.version,
  ];
};

/** The preview needs the workload cluster, which this test does not have. */
const YAML = { output: 'yaml' } as const;

async function upgrading(flags: Partial<UpgradeFlags> = {}, version = NEW) {
  return await runUpgrade(kubeconfig, version, flags);
}

test('the control plane gets the version first, and the workers after it', async () => {
  await putBlue(OLD, OLD);
  const first = await upgrading(YAML);
  expect([first.error, first.said]).toEqual([
    '',
    expect.stringContaining('kind: KubeadmControlPlane'),
  ]);
  expect(first.said).not.toContain('MachineDeployment');
});

test('the MachineDeployments get the version when the control plane has it', async () => {
  await putBlue(NEW, OLD);
  const { said, error } = await upgrading(YAML);
  expect(error).toBe('');
  expect(said).toBe(
    `apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineDeployment\nmetadata:\n  name: md\n  namespace: default\nspec:\n  template:\n    spec:\n      version: ${NEW}\n`,
  );
});

test('a Cluster with a topology gets the version itself', async () => {
  await put(clusters, 'blue', { topology: { version: OLD } });
  const { said, error } = await upgrading(YAML);
  expect(error).toBe('');
  expect(said).toContain(
    `kind: Cluster\nmetadata:\n  name: blue\n  namespace: default\nspec:\n  topology:\n    version: ${NEW}`,
  );
});

test('nothing is written while Machines do not have the version of their owner', async () => {
  await putBlue(NEW, OLD, [OLD, OLD]);
  const { error } = await upgrading();
  expect(error).toContain(
    'KubeadmControlPlane default/cp is still going to v1.36.3: 1 Machine of 1 does not have it (wait for cp-1',
  );
  expect(await versions()).toEqual([NEW, OLD]);
});

test('a Cluster that has the version everywhere says that nothing is left to do', async () => {
  await putBlue(NEW, NEW);
  expect((await upgrading()).error).toContain('already has v1.36.3 everywhere');
});

test('several Clusters are a choice, and the flags name one of them', async () => {
  await putBlue(OLD, OLD);
  await put(clusters, 'green', { topology: { version: OLD } });
  expect((await upgrading()).error).toContain(`refit upgrade ${NEW} --cluster green -n default`);
  expect((await upgrading({ ...YAML, cluster: 'green' })).said).toContain('name: green');
  expect((await upgrading({ cluster: 'red' })).error).toContain('there is no Cluster default/red');
});

test('MachineDeployments of a Cluster that names no control plane are not written', async () => {
  await put(clusters, 'blue', {});
  const more = { labels: { ...OF_BLUE, [SET_LABELS.deployment]: 'md' } };
  await put(
    machineDeployments,
    'md',
    { template: { spec: { version: OLD } } },
    { labels: OF_BLUE },
  );
  await put(machines, 'md-1', { clusterName: 'blue', version: OLD }, more);
  expect((await upgrading(YAML)).error).toContain('Cluster default/blue names no control plane');
});

test('a managed control plane without Machines gets the version before the workers', async () => {
  await putBlue(OLD, OLD);
  await client.delete(machines, 'cp-1', { namespace });
  expect((await upgrading(YAML)).said).toContain('kind: KubeadmControlPlane');
});

test('the workers wait while the status of the control plane has an older version', async () => {
  await putBlue(NEW, OLD);
  const status = { status: { version: OLD } };
  await client.patch(controlPlanes, 'cp', status, { type: 'merge', namespace });
  expect((await upgrading(YAML)).error).toContain('its API servers have v1.36.2');
});

test('a topology waits for its objects, and a paused Cluster is refused', async () => {
  await put(clusters, 'blue', { topology: { version: NEW } });
  await put(
    machineDeployments,
    'md',
    { template: { spec: { version: OLD } } },
    { labels: OF_BLUE },
  );
  expect((await upgrading(YAML, 'v1.37.0')).error).toContain(
    'MachineDeployment default/md has v1.36.2',
  );
  await client.patch(clusters, 'blue', { spec: { paused: true } }, { type: 'merge', namespace });
  expect((await upgrading(YAML, 'v1.37.0')).error).toContain('is paused, so nothing would happen');
});

test('an older version is refused with what goes back', async () => {
  await putBlue(NEW, NEW);
  expect((await upgrading(YAML, 'v1.36.1')).error).toContain('use refit rollback machine/NAME');
});

/** Returns a draft of the only choice, without the preview. */
async function draftOf(version: string): Promise<UpgradeDraft> {
  const flags = { kubeconfig, apiPort: 6443 };
  const abort = new AbortController().signal;
  const output = plainOutput;
  const parts = { modules: MODULES, clock: systemClock, output, abort, environment: {} };
  const session = { client, abort, loaded: [] } as unknown as Session;
  const [choice] = await upgradeMachines(session, flags, parts);
  if (choice === undefined) throw new Error('there is nothing to choose');
  return await choice.draft(version);
}

test('the version is written although a controller has written the status meanwhile', async () => {
  await putBlue(OLD, OLD);
  const draft = await draftOf(NEW);
  expect(draft.said.join()).toContain('If Machines need another image, change their template');
  const status = { status: { readyReplicas: 1 } };
  await client.patch(controlPlanes, 'cp', status, { type: 'merge', namespace });
  await draft.write(true);
  expect(await versions()).toEqual([OLD, OLD]);
  await draft.write(false);
  expect(await versions()).toEqual([NEW, OLD]);
});

test('the version is not written over one that somebody else has written meanwhile', async () => {
  await putBlue(OLD, OLD);
  const draft = await draftOf(NEW);
  const spec = { spec: { version: 'v1.36.9' } };
  await client.patch(controlPlanes, 'cp', spec, { type: 'merge', namespace });
  await expect(draft.write(false)).rejects.toThrow('got another version meanwhile');
  expect(await versions()).toEqual(['v1.36.9', OLD]);
});

test('a preview that fails writes nothing', async () => {
  await putBlue(OLD, OLD);
  expect((await upgrading()).error).toContain('blue-kubeconfig');
  expect(await versions()).toEqual([OLD, OLD]);
});
