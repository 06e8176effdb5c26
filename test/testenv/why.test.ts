/** Tests `refit why` and `refit preview` on a real API server: a user with read access gets the answer, and nothing is written. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNode, reportReady } from '../../sandbox/cluster/objects.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { cattlePlans, upgradePolicies } from '../../src/api/kinds.ts';
import type { PreviewView } from '../../src/cli/preview/view.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases, nodes, podDisruptionBudgets } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { microTime } from '../../src/util/clock.ts';
import { buildCattlePlan } from '../support/builders/cattle-plans.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { recorded, statusOf } from '../support/builders/views.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { type RefitResult, runRefit } from './refit-process.ts';

const W1 = 'why-w1';
const W2 = 'why-w2';
const W3 = 'why-w3';
const NAMESPACE = 'default';

let directory = '';
let admin: KubeClient;
let viewer = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-why-'));
  await installKinds();
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
  const { metadata, ...rest } = buildPlan({
    commands: [{ k0supdate: buildUpdate({ targets: { workers } }) }],
  });
  const plan: Plan = { ...rest, metadata: { name: metadata.name } };
  const [shown] = await previewed('-f', await fileOf('plan.json', plan));
  expect(shown?.stages[1]?.batches).toEqual([{ nodes: [W2, W1] }, { nodes: [W3] }]);
  expect(shown?.waits).toMatchObject([
    { target: W2, gate: 'node-ready', reason: { code: 'NodeNotReady' } },
  ]);
  await expect(admin.get(plans, 'autopilot')).rejects.toThrow('not found');

  const created = await admin.create(plans, plan);
  const since = created.metadata.creationTimestamp ?? '';
  const pending = { [W2]: 'SignalPending', [W1]: 'SignalPending', [W3]: 'SignalPending' };
  await admin.replace(
    plans,
    { ...created, status: statusOf('Schedulable', [], recorded(pending, since)) },
    { subresource: 'status' },
  );
  const all = await refit('why');
  const one = await refit('why', W2);
  const nobody = await refit('why', 'why-w9');
  expect([all, one].map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    [1, 2].map(() => ({ code: 0, stderr: [] })),
  );
  expect(all.stdout.join('\n')).toContain('Plan autopilot (id1)  running 0/3 for ');
  expect(all.stdout.join('\n')).toContain(`\n  then    node ${W2} is not Ready (NodeNotReady, `);
  expect(one.stdout[0]).toMatch(new RegExp(`^${W2} {2}worker of Plan autopilot `));
  expect(one.stdout).toContain('  ends    when the node is Ready');
  expect(nobody).toMatchObject({ code: 1, stdout: [] });
  expect(nobody.stderr.join('\n')).toContain('no plan has why-w9 among its targets');
  expect((await previewed()).map(({ name, phase }) => ({ name, phase }))).toContainEqual({
    name: 'autopilot',
    phase: 'running',
  });
  await admin.delete(plans, 'autopilot');
});

test('autopilot: the preview shows why a file would be refused, and ends with 2', async () => {
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

test('cattle: the same, by the same code', async () => {
  const { metadata, ...rest } = buildCattlePlan('why', {
    concurrency: 2,
    nodeSelector: { matchLabels: { pool: 'why' } },
  });
  const plan = { ...rest, metadata: { name: metadata.name, namespace: NAMESPACE } };
  const [shown] = await previewed('-f', await fileOf('cattle.json', plan));
  expect(shown?.stages[0]?.batches.map(({ nodes }) => nodes.length)).toEqual([2, 1]);
  expect(shown?.stages[0]?.batches.flatMap(({ nodes }) => nodes).toSorted()).toEqual([W1, W2, W3]);

  await admin.create(cattlePlans, plan, { namespace: NAMESPACE });
  const { code, stdout } = await refit('why', W1);
  expect(code).toBe(0);
  expect(stdout.join('\n')).toMatch(`${W1}  node of Plan ${NAMESPACE}/why`);
  expect(stdout.join('\n')).toContain('the system-upgrade-controller carries it out');
  expect((await previewed()).map(({ dialect, name }) => ({ dialect, name }))).toContainEqual({
    dialect: 'cattle',
    name: 'why',
  });
  await admin.delete(cattlePlans, 'why', { namespace: NAMESPACE });
});

async function whyOf(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await refit('why', ...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: [] });
  return stdout.join('\n');
}

/**
 * Creates a PodDisruptionBudget that never allows the eviction of the only pod with this label. Resolves when the
 * status of the budget says so.
 */
async function addBudget(puppets: Puppets, app: string): Promise<void> {
  const spec = { minAvailable: 1, selector: { matchLabels: { app } } };
  const namespace = NAMESPACE;
  await admin.create(podDisruptionBudgets, { metadata: { name: app }, spec }, { namespace });
  const { metadata } = await admin.get(podDisruptionBudgets, app, { namespace });
  await puppets.until(async () => {
    const { status } = await admin.get(podDisruptionBudgets, app, { namespace });
    expect(status).toMatchObject({
      observedGeneration: metadata.generation,
      expectedPods: 1,
      disruptionsAllowed: 0,
    });
  });
}

test('a budget that allows no eviction is named with its pod: before the node is touched, and during its drain', async () => {
  await using puppets = await Puppets.create(admin, 'why-d1');
  const pod = await puppets.addLastingPod('why-d1');
  await addBudget(puppets, 'why-d1-lasting');
  const held = `PodDisruptionBudget default/why-d1-lasting blocks ${pod}: it wants 1 of its 1 pods healthy at all times`;
  const ends =
    'when the budget allows the eviction: an operator that manages the pods may change it now that the node is cordoned; otherwise change the budget, or run more replicas';
  try {
    await puppets.plan(1);
    const before = await whyOf();
    expect(before).toContain(
      `\n  warning the drain of why-d1 may not end: ${held} (minAvailable: 1). Refit cordons the node, and asks for the evictions for at most 1 h (`,
    );

    const [shown] = await previewed();
    expect(shown?.drains).toMatchObject({
      nodes: 1,
      evictable: 1,
      blocked: [],
      warnings: [expect.stringContaining(held)],
    });

    await puppets.cordonByHand('why-d1');
    await puppets.isAt('why-d1', 'Cordoning');
    const during = await whyOf('why-d1');
    expect(during).toMatch(
      /\n {2}now {5}why-d1 Cordoning \(.*\): 1 pod is left on node why-d1 \(.*\): /,
    );
    expect(during).toContain(held);
    // There is no leader, so no deadline counts.
    expect(during).toContain(`\n  ends    ${ends}\n`);
    expect(during).not.toContain('\n  limit ');
  } finally {
    await admin.delete(podDisruptionBudgets, 'why-d1-lasting', { namespace: NAMESPACE });
  }
});

test('a skipped node: why says what it waits for while another one has the slot', async () => {
  const held = 'why-p1';
  const past = 'why-p2';
  await using puppets = await Puppets.create(admin, held, past);
  const pod = await puppets.addLastingPod(held);
  await addBudget(puppets, `${held}-lasting`);
  const drain = { zeroDisruptionBudgets: 'Wait' } as const;
  await admin.create(upgradePolicies, buildUpgradePolicy('why-waits', { drain }));
  try {
    await puppets.plan(1);
    await puppets.isAt(past, 'Restart', { [held]: 'SignalPending' });
    const text = await whyOf(held);
    expect(text).toContain(
      `\n  then    ${held} cannot be drained: PodDisruptionBudget default/${held}-lasting blocks ${pod}: it wants 1 of its 1`,
    );
    expect(text).toContain(
      '\n  ends    when the budget allows the eviction: change the budget, run more replicas, or set drain.zeroDisruptionBudgets to Try',
    );
    expect(await whyOf(past)).toContain(`\n  now     ${past} Restart (`);
  } finally {
    await admin.delete(upgradePolicies, 'why-waits');
    await admin.delete(podDisruptionBudgets, `${held}-lasting`, { namespace: NAMESPACE });
  }
});

test('a closed window: which policy, and when it opens; the preview says by which rule it applies', async () => {
  await using puppets = await Puppets.create(admin, 'why-o1');
  const days = [
    'Sunday',
    'Monday',
    'Tuesday',
    'Wednesday',
    'Thursday',
    'Friday',
    'Saturday',
  ] as const;
  const day = days[(new Date().getUTCDay() + 3) % 7] ?? 'Sunday';
  const window = { days: [day], start: '00:00', length: '1h', timeZone: 'UTC' };
  const spec = { plans: [{ name: 'autopilot' }], windows: [window] };
  await admin.create(upgradePolicies, buildUpgradePolicy('why-nightly', spec));
  try {
    const plan = await puppets.plan(1);
    const text = await whyOf();
    expect(text).toContain(
      'outside of the maintenance windows of UpgradePolicy why-nightly: nothing starts before 20',
    );
    expect(text).toMatch(/\n {2}ends {4}when the window opens, at 20\d\d-\d\d-\d\dT00:00:00Z\n/);
    const path = await fileOf('window.json', { ...plan, metadata: { name: 'autopilot' } });
    const [shown] = await previewed('-f', path);
    expect(shown?.policy).toEqual({
      name: 'why-nightly',
      rule: 'covers plans with name autopilot',
    });
    expect(shown?.waits).toMatchObject([
      { gate: 'window-open', until: expect.stringMatching(/T00:00:00Z$/) as string },
    ]);
  } finally {
    await admin.delete(upgradePolicies, 'why-nightly');
  }
});

test.each<[string, { holderIdentity: string; minutes: number }, RegExp]>([
  [
    'is silent',
    { holderIdentity: 'gone', minutes: 10 },
    /No renewal by leader gone for 10 min( \d+ s)?: no new node starts/,
  ],
  [
    'gave the lease back',
    { holderIdentity: '', minutes: 5 },
    /No leader for 5 min( \d+ s)?: no refit controller holds lease \S+\. No new node starts until one runs\./,
  ],
])(
  'a leader that %s: since when, and what to do',
  async (_name, { holderIdentity, minutes }, said) => {
    await using puppets = await Puppets.create(admin, 'why-l1');
    await puppets.plan(1);
    const { name, namespace } = LEADER_LEASE;
    await admin.delete(leases, name, { namespace }).catch(() => undefined);
    const metadata = { name, namespace };
    await admin.create(
      leases,
      { metadata, spec: { leaseDurationSeconds: 15, holderIdentity, renewTime: ago(minutes) } },
      { namespace },
    );
    try {
      expect(await whyOf()).toMatch(said);
      expect(await whyOf('why-l1')).toMatch(said);
      expect((await refit('preview')).stdout[0]).toMatch(said);
    } finally {
      await admin.delete(leases, name, { namespace });
    }
  },
);

/** Returns the time in the form that a Lease uses. */
function ago(minutes: number): string {
  return microTime(Date.now() - minutes * 60_000);
}
