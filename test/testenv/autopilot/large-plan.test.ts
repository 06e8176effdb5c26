/** Tests a plan with more targets than fit into one object, on a real API server, with the documented rights only. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { type StatusShard, statusShards } from '../../../src/api/refit/status-shard.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { loadClusterConfig } from '../../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../../src/kube/transport/http-client.ts';
import { buildPlan, buildUpdate, listed } from '../../support/builders/plans.ts';
import { installKinds, kubeconfigFor } from '../control-plane.ts';
import { RefitProcess, runRefit } from '../refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
/** The garbage collector looks for new kinds twice a minute. */
const COLLECTED = { timeout: 150_000, interval: 500 };
/** None of these nodes exists, so the controller refuses the plan and records all of them in one write. */
const NAMES = Array.from({ length: 5_001 }, (_, index) => `large-plan-w${index}`);

let admin: KubeClient;
let controller: RefitProcess;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  const connection = ['--kubeconfig', await kubeconfigFor('controller'), '--lease-duration', '5s'];
  controller = new RefitProcess('controller', ...connection);
});

afterAll(async () => {
  await controller.stop('SIGTERM');
  for (const { metadata } of (await admin.list(plans)).items)
    await admin.delete(plans, metadata.name);
  admin.close();
});

const shardsNow = async (): Promise<StatusShard[]> => (await admin.listAll(statusShards)).items;

test('5,001 targets are recorded in status shards, the first failures in the plan; all of it is visible, and deleted with the plan', async () => {
  const { metadata: _, ...plan } = buildPlan({
    commands: [{ k0supdate: buildUpdate({ targets: { workers: listed(...NAMES) } }) }],
  });
  await admin.create(plans, { ...plan, metadata: { name: 'autopilot' } });
  await vi.waitFor(async () => {
    expect((await admin.get(plans, 'autopilot')).status?.state).toBe('IncompleteTargets');
  }, PATIENCE);

  const [command] = (await admin.get(plans, 'autopilot')).status?.commands ?? [];
  expect(JSON.parse(command?.description ?? '')).toMatchObject({
    targets: { total: 5001, done: 0, failed: 5001 },
    statusShards: { prefix: expect.stringMatching(/^autopilot-[0-9a-f]+$/), count: 26 },
  });
  expect(command?.k0supdate?.workers).toHaveLength(1_000);
  // The filter is necessary because the shards of a refused record stay until the plan is deleted.
  const { statusShards: record } = JSON.parse(command?.description ?? '') as {
    statusShards: { prefix: string };
  };
  const shards = (await shardsNow()).filter(({ metadata: { name } }) =>
    name.startsWith(record.prefix),
  );
  expect(shards).toHaveLength(26);
  const held = shards.flatMap(({ settled = [], pending }) => [
    ...pending,
    ...settled.flatMap(({ targets }) => targets),
  ]);
  expect(new Set(held)).toEqual(new Set(NAMES));

  const viewer = ['--kubeconfig', await kubeconfigFor('viewer')];
  const { code, stdout } = await runRefit('status', '-o', 'json', ...viewer);
  expect(code).toBe(0);
  const { plans: seen } = JSON.parse(stdout.join('\n')) as {
    plans: { stages: { targets: unknown[] }[] }[];
  };
  expect(seen[0]?.stages[1]?.targets).toHaveLength(NAMES.length);

  await admin.delete(plans, 'autopilot');
  await vi.waitFor(async () => expect(await shardsNow()).toEqual([]), COLLECTED);
}, 200_000);
