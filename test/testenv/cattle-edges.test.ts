/** Tests on a real control plane what happens when a Plan, a Node or a Job changes in the middle of an upgrade. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Job, jobs, nodes } from '../../src/kube/resources.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import {
  conditionOf,
  installKinds,
  NAMESPACE,
  nodeOf,
  planOf,
  startController,
} from './cattle-rig.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';
import { runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 120_000, interval: 200 };
const NODES = ['edge-1', 'edge-2'];
const TAINT = 'example.com/held';
const TTL_S = 2;

let directory = '';
let admin: KubeClient;
let controller: Process;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-edges-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  admin = await clientOf('admin');
  await installKinds();
  for (const name of NODES) await admin.create(nodes, nodeOf(name, { pool: 'edges' }));
  const environment = {
    SYSTEM_UPGRADE_JOB_TTL_SECONDS_AFTER_FINISH: `${TTL_S}`,
    SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '0',
  };
  controller = await startController(directory, environment);
});

afterAll(async () => {
  await controller.stop();
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', '--all', '-n', NAMESPACE]);
  await vi.waitFor(
    async () => expect((await admin.list(jobs, { namespace: NAMESPACE })).items).toEqual([]),
    PATIENCE,
  );
  for (const name of NODES) await admin.delete(nodes, name);
  admin.close();
  await rm(directory, { recursive: true });
});

/** Creates a Plan. By default, it is for the only node, `edge-1`. */
async function create(name: string, spec: Partial<CattleSpec> = {}): Promise<void> {
  const nodeSelector = { matchLabels: { 'kubernetes.io/hostname': 'edge-1' } };
  await apply(JSON.stringify(planOf(name, { nodeSelector, version: 'v1', ...spec })));
  onTestFinished(
    async () =>
      void (await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', name, '-n', NAMESPACE])),
  );
}

async function edit(name: string, spec: object): Promise<void> {
  await admin.patch(cattlePlans, name, { spec }, { namespace: NAMESPACE, type: 'merge' });
}

async function until(name: string, type: string, wanted: object): Promise<CattlePlan> {
  return await vi.waitFor(async () => {
    const found = await admin.get(cattlePlans, name, { namespace: NAMESPACE });
    expect(conditionOf(found, type)).toMatchObject(wanted);
    return found;
  }, PATIENCE);
}

const complete = (name: string): Promise<CattlePlan> =>
  until(name, 'Complete', { status: 'True', reason: 'Complete' });

async function jobsOf(plan: string): Promise<readonly Job[]> {
  const labelSelector = `upgrade.cattle.io/plan=${plan}`;
  return (await admin.list(jobs, { namespace: NAMESPACE, labelSelector })).items;
}

/** Waits until the Jobs that have not ended have exactly these versions. */
async function untilVersions(plan: string, ...wanted: readonly string[]): Promise<void> {
  await vi.waitFor(async () => {
    const open = (await jobsOf(plan)).filter(
      ({ status }) => (status?.conditions ?? []).length === 0,
    );
    expect(open.map(({ metadata }) => metadata.labels?.['upgrade.cattle.io/version'])).toEqual(
      wanted,
    );
  }, PATIENCE);
}

/** Prevents the scheduling of pods to the node until the test ends or the returned function is called. */
async function hold(name: string): Promise<() => Promise<void>> {
  await kubectlAs('admin', ['taint', 'node', name, `${TAINT}=yes:NoSchedule`]);
  let isHeld = true;
  const release = async (): Promise<void> => {
    if (isHeld) await kubectlAs('admin', ['taint', 'node', name, `${TAINT}-`]);
    isHeld = false;
  };
  onTestFinished(release);
  return release;
}

/** Cordons the node as the container of a Job does. No container runs in this test. */
async function cordon(name: string): Promise<void> {
  await kubectlAs('admin', ['cordon', name]);
  onTestFinished(async () => void (await kubectlAs('admin', ['uncordon', name])));
}

const isCordoned = async (name: string): Promise<boolean> =>
  (await admin.get(nodes, name)).spec?.unschedulable === true;

test('a node gets only one Job, even if postCompleteDelay is longer than the TTL of the finished Job', async () => {
  const release = await hold('edge-1');
  await create('rest');
  await untilVersions('rest', 'v1');
  await edit('rest', { postCompleteDelay: `${TTL_S * 3}s` });
  const [job] = await jobsOf('rest');
  const seen = new Set([job?.metadata.uid]);
  await release();
  await vi.waitFor(async () => {
    for (const { metadata } of await jobsOf('rest')) seen.add(metadata.uid);
    expect(
      conditionOf(await admin.get(cattlePlans, 'rest', { namespace: NAMESPACE }), 'Complete')
        .status,
    ).toBe('True');
  }, PATIENCE);
  expect(seen.size).toBe(1);
});

test('a Plan set back to an earlier version lets the running Job end, then upgrades the node again', async () => {
  await create('back', { cordon: true });
  await complete('back');
  const release = await hold('edge-1');
  await edit('back', { version: 'v2' });
  await untilVersions('back', 'v2');
  await cordon('edge-1');
  await edit('back', { version: 'v1' });
  await vi.waitFor(async () => {
    const { status } = await admin.get(cattlePlans, 'back', { namespace: NAMESPACE });
    expect(status?.latestVersion).toBe('v1');
  }, PATIENCE);
  const seen = new Set<string | undefined>();
  await release();
  const { status } = await vi.waitFor(async () => {
    for (const { metadata } of await jobsOf('back'))
      seen.add(metadata.labels?.['upgrade.cattle.io/version']);
    const found = await complete('back');
    expect(seen).toEqual(new Set(['v1', 'v2']));
    return found;
  }, PATIENCE);
  expect(status?.latestVersion).toBe('v1');
  expect(await isCordoned('edge-1')).toBe(false);
});

test('after an edit to cordon: false, a node is still uncordoned when its Job ends', async () => {
  const release = await hold('edge-1');
  await create('cordon', { cordon: true });
  await untilVersions('cordon', 'v1');
  await cordon('edge-1');
  await edit('cordon', { cordon: false });
  await release();
  await complete('cordon');
  expect(await isCordoned('edge-1')).toBe(false);
});

test('Nodes with the same hostname label get no Job until the labels differ, and refit why names these Nodes', async () => {
  await kubectlAs('admin', [
    'label',
    'node',
    'edge-2',
    '--overwrite',
    'kubernetes.io/hostname=edge-1',
  ]);
  await create('twins', { nodeSelector: { matchLabels: { pool: 'edges' } }, concurrency: 2 });
  await until('twins', 'RefitWaits', { status: 'True' });
  const plan = `cattle/${NAMESPACE}/twins`;
  const { stdout } = await runRefit(
    'why',
    'edge-2',
    '--plan',
    plan,
    '--kubeconfig',
    await kubeconfigFor('viewer'),
  );
  expect(stdout.join('\n')).toContain(
    'the Nodes edge-1, edge-2 have the same label kubernetes.io/hostname=edge-1',
  );
  expect(await jobsOf('twins')).toEqual([]);
  await kubectlAs('admin', [
    'label',
    'node',
    'edge-2',
    '--overwrite',
    'kubernetes.io/hostname=edge-2',
  ]);
  await complete('twins');
});
