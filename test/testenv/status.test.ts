/** Tests that `refit status` shows changes on a real API server as they happen, and ends with the plan. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createNode, reportReady } from '../../sandbox/cluster/objects.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { ShownStatus } from '../../src/cli/status/json-form.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { startTcpProxy } from '../faults/tcp-proxy.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { buildSignal } from '../support/builders/signals.ts';
import { recorded, statusOf } from '../support/builders/views.ts';
import { controlPlane, installKinds, kubeconfigFor } from './control-plane.ts';
import { kubeconfigVia } from './kubeconfig-variants.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 150 };
const W1 = 'status-w1';
const W2 = 'status-w2';

let directory = '';
let admin: KubeClient;
let viewer = '';
/** The time at which the plan and all other objects of this test were created. Older signals do not count. */
let began = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-status-'));
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  viewer = await kubeconfigFor('viewer');
  for (const name of [W1, W2]) await createNode(admin, name, {});
});

afterEach(async () => {
  await admin.delete(plans, 'autopilot').catch(() => undefined);
  await annotate(W1, {
    'k0sproject.io/autopilot-signal-version': null,
    'k0sproject.io/autopilot-signal-data': null,
  });
});

afterAll(async () => {
  for (const name of [W1, W2]) await admin.delete(nodes, name);
  admin.close();
  await rm(directory, { recursive: true });
});

async function annotate(
  name: string,
  annotations: Readonly<Record<string, string | null>>,
): Promise<void> {
  await admin.patch(nodes, name, { metadata: { annotations } }, { type: 'merge' });
}

async function signal(status?: string): Promise<void> {
  const said = status === undefined ? {} : { status, timestamp: began };
  await annotate(W1, buildSignal({ created: began, ...said }));
}

async function create(): Promise<void> {
  const commands = [{ k0supdate: buildUpdate({ targets: { workers: listed(W1, W2) } }) }];
  const { metadata, ...plan } = buildPlan({ commands });
  const created = await admin.create(plans, { ...plan, metadata: { name: metadata.name } });
  began = created.metadata.creationTimestamp ?? '';
  for (const name of [W1, W2]) await reportReady(admin, name, 'v1.36.3+k0s.0', began);
}

/** What a leader would record. No leader runs here. */
async function record(state: string, w1: string, w2: string, why?: string): Promise<void> {
  const status: Plan['status'] = statusOf(state, [], recorded({ [W1]: w1, [W2]: w2 }, began), why);
  await admin.replace(
    plans,
    { ...(await admin.get(plans, 'autopilot')), status },
    { subresource: 'status' },
  );
}

function watch(...args: readonly string[]): RefitProcess {
  return new RefitProcess('status', '-w', '--kubeconfig', viewer, ...args);
}

/**
 * Returns the lines of a watch without their times. Leaves out the lines about the leader, because they depend on the
 * leases of other tests.
 */
function changesOf({ stdout }: RefitProcess): string[] {
  return stdout
    .map((line) => line.replace(/^\S+Z /, ''))
    .filter((line) => !line.includes('controller'));
}

test('refit status prints the same data as JSON and as YAML, and both match the objects', async () => {
  await create();
  await record('SchedulableWait', 'SignalSent', 'SignalPending');
  await signal('Restart');
  const [json, yaml] = await Promise.all(
    ['json', 'yaml'].map(
      async (form) => await runRefit('status', '-o', form, '--kubeconfig', viewer),
    ),
  );
  expect([json?.code, yaml?.code]).toEqual([0, 0]);
  const view = JSON.parse(json?.stdout.join('\n') ?? '') as ShownStatus;
  expect(parse(yaml?.stdout.join('\n') ?? '')).toEqual(view);
  const { uid } = (await admin.get(plans, 'autopilot')).metadata;
  expect(view.plans).toMatchObject([{ name: 'autopilot', uid, created: began, phase: 'running' }]);
  expect(view.plans[0]?.stages[1]?.targets).toMatchObject([
    {
      name: W1,
      phase: 'working',
      step: 'Restart',
      since: began,
      agent: expect.objectContaining({ ours: false }),
    },
    { name: W2, phase: 'pending', since: began, agent: { ours: false, title: 'unknown' } },
  ]);
});

test('a watch without a plan waits for one, shows each change once, and ends with 0 when the plan is done', async () => {
  await using watching = watch();
  await expect.poll(() => changesOf(watching), PATIENCE).toEqual(['There is no plan.']);
  await create();
  await expect.poll(() => changesOf(watching), PATIENCE).toContain('Plan autopilot is new');
  await record('SchedulableWait', 'SignalSent', 'SignalPending');
  // Plans and Nodes have separate watches, so the change of either may be observed first.
  await expect.poll(() => changesOf(watching), PATIENCE).toContain('Plan autopilot is running');
  for (const status of [undefined, 'Downloading', 'Restart']) {
    await signal(status);
    await expect
      .poll(() => changesOf(watching).at(-1), PATIENCE)
      .toBe(`Plan autopilot worker ${W1} ${status ?? 'signalled'}`);
  }
  await record('Completed', 'SignalCompleted', 'SignalCompleted');
  expect(await watching.ended).toBe(0);
  expect(changesOf(watching)).toEqual([
    'There is no plan.',
    'Plan autopilot has 0 of 2 workers done',
    'Plan autopilot is new',
    'Plan autopilot is running',
    `Plan autopilot worker ${W1} signalled`,
    `Plan autopilot worker ${W1} Downloading`,
    `Plan autopilot worker ${W1} Restart`,
    `Plan autopilot worker ${W1} done`,
    `Plan autopilot worker ${W2} done`,
    'Plan autopilot is done',
  ]);
  expect(watching.stderr).toEqual([]);
});

test('json: one object and line for each change, and exit code 1 when the plan failed', async () => {
  await create();
  await record('SchedulableWait', 'SignalSent', 'SignalPending');
  await using watching = watch('-o', 'json');
  await expect.poll(() => watching.stdout.length, PATIENCE).toBeGreaterThan(0);
  await record('ApplyFailed', 'SignalApplyFailed', 'SignalPending', `${W1}: no socket`);
  expect(await watching.ended).toBe(1);
  expect(watching.stderr).toEqual([
    `REFIT_PLAN_FAILED: Plan autopilot has failed: ${W1}: no socket (run \`refit status\`)`,
  ]);
  const views = watching.stdout.map((line) => JSON.parse(line) as ShownStatus);
  expect(views.map(({ plans: [plan] }) => plan?.phase)).toEqual([
    ...views.slice(1).map(() => 'running'),
    'failed',
  ]);
  expect(new Set(watching.stdout).size).toBe(watching.stdout.length);
  expect(views.at(-1)?.plans[0]).toMatchObject({
    reason: `${W1}: no socket`,
    ended: began,
    waits: [],
    next: [],
  });
});

test('with --timeout a watch ends with the plans that had not ended', async () => {
  await create();
  await record('SchedulableWait', 'SignalSent', 'SignalPending');
  await using watching = watch('--timeout', '2s');
  expect(await watching.ended).toBe(1);
  expect(watching.stderr).toEqual([
    expect.stringMatching(
      /^REFIT_TIMEOUT: Plan autopilot \(.+\) had not ended after 2 s \(the plan goes on/,
    ),
  ]);
});

test('a watch shows a policy that is created meanwhile, and its deletion', async () => {
  await create();
  await record('SchedulableWait', 'SignalCompleted', 'SignalPending');
  await using watching = watch();
  await expect.poll(() => changesOf(watching), PATIENCE).toContain('Plan autopilot is running');
  const { plans: before } = await observeOnce();
  expect(before).toMatchObject([{ next: [W2] }]);
  await admin.create(upgradePolicies, buildUpgradePolicy('status-frozen', { paused: true }));
  try {
    const told = `Plan autopilot ${W2} waits (Paused): UpgradePolicy status-frozen has spec.paused: nothing new starts`;
    await expect.poll(() => changesOf(watching), PATIENCE).toContain(told);
    const { plans: held } = await observeOnce();
    expect(held).toMatchObject([
      { policy: 'status-frozen', paused: 'policy', waits: [{ reason: { code: 'Paused' } }] },
    ]);
  } finally {
    await admin.delete(upgradePolicies, 'status-frozen');
  }
  expect((await observeOnce()).plans[0]).not.toHaveProperty('policy');
});

async function observeOnce(): Promise<ShownStatus> {
  const { stdout } = await runRefit('status', '-o', 'json', '--kubeconfig', viewer);
  return JSON.parse(stdout.join('\n')) as ShownStatus;
}

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends a watch with 130 and no message',
  async (name) => {
    await create();
    await using watching = watch();
    await expect.poll(() => changesOf(watching), PATIENCE).toContain('Plan autopilot is new');
    expect(await watching.stop(name)).toBe(130);
    expect(watching.stderr).toEqual([]);
  },
);

test('a closed pipe ends a watch', async () => {
  await create();
  await using watching = watch();
  await expect.poll(() => watching.stdout.length, PATIENCE).toBeGreaterThan(0);
  watching.closeOutput();
  await record('SchedulableWait', 'SignalSent', 'SignalPending');
  expect(await watching.ended).toBe(130);
  expect(watching.stderr).toEqual([]);
});

test('a watch that loses the API server says that its data is old', async () => {
  const proxy = await startTcpProxy({ target: { host: '127.0.0.1', port: controlPlane().port } });
  const kubeconfig = await kubeconfigVia(directory, 'viewer', `https://127.0.0.1:${proxy.port}`);
  await create();
  await using watching = new RefitProcess('status', '-w', '--kubeconfig', kubeconfig);
  await expect.poll(() => changesOf(watching), PATIENCE).toContain('Plan autopilot is new');
  await proxy.stop();
  await expect
    .poll(() => changesOf(watching).at(-1), PATIENCE)
    .toBe('No answer from the API server: the output below may be out of date.');
  expect(watching.isRunning).toBe(true);
});
