/** Tests hooks of a policy for Plans of Rancher on a real API server. The test itself acts as the kubelet of the pods. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { cattlePlans, upgradePolicies } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Job, jobs, nodes, pods } from '../../src/kube/resources.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, NAMESPACE, nodeOf, planOf, startController } from './cattle-rig.ts';
import { apply, kubectlAs } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';
import { freeJobHook, type HookJobs, hookJobs } from './hook-jobs.ts';
import { PATIENCE } from './puppets.ts';

const NODE = 'hooked-1';
const RIGHTS = 'deploy/rbac-hooks.yaml';
const LABEL = 'plan.upgrade.cattle.io/hooked';

let admin: KubeClient;
let made: HookJobs;
let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-cattle-hooks-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  admin = await clientOf('admin');
  made = hookJobs(admin);
  await installKinds();
  await apply(await readFile(RIGHTS, 'utf8'));
  await admin.create(nodes, nodeOf(NODE, { pool: 'hooked' }));
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', '--all', '-n', NAMESPACE]);
  await made.remove();
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
  await admin.delete(nodes, NODE);
  admin.close();
  await rm(directory, { recursive: true });
});

async function upgradeJobs(): Promise<readonly Job[]> {
  return (await admin.list(jobs, { namespace: NAMESPACE })).items;
}

/** Ends the pod of the only upgrade Job, as a kubelet would. */
async function endUpgrade(): Promise<void> {
  await vi.waitFor(async () => {
    const { items } = await admin.list(pods, { namespace: NAMESPACE });
    expect(items).toHaveLength(1);
    const [pod] = items;
    const options = { type: 'merge', subresource: 'status', namespace: NAMESPACE } as const;
    const status = { phase: 'Succeeded' };
    await admin.patch(pods, pod?.metadata.name ?? '', { status }, options);
  }, PATIENCE);
}

test('a node of a Rancher Plan gets one Job for each hook and one upgrade Job, also after the leader was killed, and its Node shows the record', async () => {
  const hooks = [freeJobHook('backup', 'BeforeDrain'), freeJobHook('smoke', 'AfterVerified')];
  const policy = buildUpgradePolicy('cattle-hooks', { plans: [{ dialect: 'cattle' }], hooks });
  await admin.create(upgradePolicies, policy);
  onTestFinished(async () => await admin.delete(upgradePolicies, 'cattle-hooks'));
  const first = await startController(directory, {});
  onTestFinished(async () => await first.stop());
  const spec = { nodeSelector: { matchLabels: { pool: 'hooked' } }, version: 'v1.2.3' };
  await admin.create(cattlePlans, planOf('hooked', spec));
  const backup = await made.last('backup');
  expect(await upgradeJobs()).toEqual([]);

  process.kill(first.pid, 'SIGKILL');
  const second = await startController(directory, {});
  onTestFinished(async () => await second.stop());
  await made.end(backup, 'Succeeded');
  await endUpgrade();
  await made.end(await made.last('smoke'), 'Succeeded');

  const node = await vi.waitFor(async () => {
    const found = await admin.get(nodes, NODE);
    expect(found.metadata.labels).toHaveProperty([LABEL]);
    return found;
  }, PATIENCE);
  expect([await made.of('backup'), await made.of('smoke'), await upgradeJobs()]).toMatchObject([
    { length: 1 },
    { length: 1 },
    { length: 1 },
  ]);
  const { annotations = {} } = node.metadata;
  expect(
    JSON.parse(annotations['system-upgrade.upgraded.refit.upgrade.cattle.io/hooked'] ?? ''),
  ).toMatchObject({
    version: 'v1.2.3',
    hash: node.metadata.labels?.[LABEL],
    begun: expect.stringMatching(/Z$/),
    ended: expect.stringMatching(/Z$/),
  });
  expect(annotations).not.toHaveProperty(['system-upgrade.attempt.refit.upgrade.cattle.io/hooked']);
});
