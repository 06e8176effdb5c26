/** Shows that whoever may only look is told by `refit why` and `refit preview` what a real API server has, and that nothing is written. */
import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { cattlePlans } from '../../src/api/cattle/plan.ts';
import type { PreviewView } from '../../src/cli/preview/view.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { loadClusterConfig } from '../../src/kube/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createNode, reportReady } from '../../tools/cluster/objects.ts';
import { buildCattlePlan } from '../builders/cattle-plans.ts';
import { buildPlan, buildUpdate, listed } from '../builders/plans.ts';
import { recorded, statusOf } from '../builders/views.ts';
import { apply, kubeconfigFor } from './control-plane.ts';
import { type RefitResult, runRefit } from './refit-process.ts';

const [W1, W2, W3] = ['why-w1', 'why-w2', 'why-w3'];
const NAMESPACE = 'default';

let directory = '';
let admin: KubeClient;
let viewer = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-why-'));
  for (const file of globSync('deploy/crds/*.yaml')) await apply(await readFile(file, 'utf8'));
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  viewer = await kubeconfigFor('viewer');
  for (const name of [W1, W2, W3]) {
    await createNode(admin, name, { 'kubernetes.io/hostname': name, pool: 'why' });
    if (name !== W2) await reportReady(admin, name, 'v1.36.3+k0s.0', '2026-11-20T08:00:00Z');
  }
});

afterAll(async () => {
  for (const name of [W1, W2, W3]) await admin.delete(nodes, name);
  admin.close();
  await rm(directory, { recursive: true });
});

async function refit(...args: readonly string[]): Promise<RefitResult> {
  return await runRefit(...args, '--kubeconfig', viewer);
}

async function fileOf(name: string, object: object): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, JSON.stringify(object));
  return path;
}

async function previewed(...args: readonly string[]): Promise<PreviewView['plans']> {
  const { code, stdout, stderr } = await refit('preview', '-o', 'json', ...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
  return (JSON.parse(stdout.join('\n')) as PreviewView).plans;
}

test('autopilot: shown before it is created, explained while it waits', async () => {
  const workers = { ...listed(W2, W1, W3), limits: { concurrent: 2 } };
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate: buildUpdate({ targets: { workers } }) }] });
  const plan: Plan = { ...rest, metadata: { name: metadata.name } };
  const [shown] = await previewed('-f', await fileOf('plan.json', plan));
  expect(shown?.stages[1]?.waves).toEqual([[W2, W1], [W3]]);
  expect(shown?.waits).toMatchObject([{ target: W2, gate: 'node-ready', reason: { code: 'NodeNotReady' } }]);
  await expect(admin.get(plans, 'autopilot')).rejects.toThrow('not found');

  const created = await admin.create(plans, plan);
  const since = created.metadata.creationTimestamp ?? '';
  const pending = { [W2]: 'SignalPending', [W1]: 'SignalPending', [W3]: 'SignalPending' };
  await admin.replace(
    plans,
    { ...created, status: statusOf('Schedulable', [], recorded(pending, since)) },
    { subresource: 'status' },
  );
  const [all, one, nobody] = [await refit('why'), await refit('why', W2), await refit('why', 'why-w9')];
  expect([all, one, nobody].map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    [1, 2, 3].map(() => ({ code: 0, stderr: [] })),
  );
  expect(all.stdout.join('\n')).toContain('Plan autopilot (id1) is running');
  expect(all.stdout.join('\n')).toContain(`Waiting: node ${W2} is not Ready (node-ready, for`);
  expect(one.stdout).toEqual([
    expect.stringMatching(`^${W2} is a worker of Plan autopilot .* This ends when the node is Ready\\.`),
  ]);
  expect(nobody.stdout).toEqual(['No plan has why-w9 among its targets.']);
  expect((await previewed()).map(({ name, phase }) => ({ name, phase }))).toContainEqual({
    name: 'autopilot',
    phase: 'running',
  });
  await admin.delete(plans, 'autopilot');
});

test('autopilot: a file that would be refused is shown, and ends with 2', async () => {
  const workers = listed(W1, 'why-w9');
  const path = await fileOf(
    'refused.json',
    buildPlan({ commands: [{ k0supdate: buildUpdate({ targets: { workers } }) }] }),
  );
  const { code, stdout, stderr } = await refit('preview', '-f', path);
  expect(code).toBe(2);
  expect(stdout.join('\n')).toMatch(/problem .*why-w9/);
  expect(stderr).toEqual([expect.stringMatching(/^REFIT_FILE: .*refused\.json: .*why-w9/)]);
});

test('cattle: the same, of the same code', async () => {
  const { metadata, ...rest } = buildCattlePlan('why', {
    concurrency: 2,
    nodeSelector: { matchLabels: { pool: 'why' } },
  });
  const plan = { ...rest, metadata: { name: metadata.name, namespace: NAMESPACE } };
  const [shown] = await previewed('-f', await fileOf('cattle.json', plan));
  expect(shown?.stages[0]?.waves.map(({ length }) => length)).toEqual([2, 1]);
  expect(shown?.stages[0]?.waves.flat().toSorted()).toEqual([W1, W2, W3]);

  await admin.create(cattlePlans, plan, { namespace: NAMESPACE });
  const { code, stdout } = await refit('why', W1);
  expect(code).toBe(0);
  expect(stdout.join('\n')).toMatch(`${W1} is a worker of Plan why`);
  expect(stdout.join('\n')).toContain('It is for the system-upgrade-controller to carry out');
  expect((await previewed()).map(({ dialect, name }) => ({ dialect, name }))).toContainEqual({
    dialect: 'cattle',
    name: 'why',
  });
  await admin.delete(cattlePlans, 'why', { namespace: NAMESPACE });
});
