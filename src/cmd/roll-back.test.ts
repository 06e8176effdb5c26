/**
 * Tests `refit rollback` on an API server in memory: with a Plan, without a Plan, and after a rollback Plan was
 * refused.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { buildCattlePlan } from '../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../test/support/builders/plans.ts';
import { buildSignal, type OriginalSignal } from '../../test/support/builders/signals.ts';
import { later } from '../../test/support/clock/times.ts';
import { type Plan, plans } from '../api/autopilot/plan.ts';
import { cattlePlans, nodeRollouts } from '../api/kinds.ts';
import type { NodeRolloutRun } from '../api/refit/node-rollout.ts';
import { plainOutput } from '../cli/output.ts';
import { inSession } from '../cli/status/status-session.ts';
import { showWhy } from '../cli/why/why-command.ts';
import {
  deletedK0sPlan,
  rollBackDeletedK0sPlan,
} from '../dialects/autopilot/command/roll-back-deleted-plan.ts';
import { LEADER_LEASE } from '../dialects/autopilot/leader-lease.ts';
import { MODULES } from '../dialects/modules.ts';
import { ABORT_ANNOTATION } from '../engine/model/controls.ts';
import { ROLLS_BACK_ANNOTATION } from '../engine/model/earlier-versions.ts';
import { DIALECT_LABEL } from '../engine/report/node-rollout-object.ts';
import type { KubeClient } from '../kube/client.ts';
import { loadClusterConfig } from '../kube/config/kubeconfig.ts';
import { leases, nodes } from '../kube/resources.ts';
import { describeProblem, ifFound } from '../kube/status-error.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { controlNodes, ROLLOUT_ANNOTATION } from '../signal/names.ts';
import { microTime, systemClock } from '../util/clock.ts';
import { rollBack } from './roll-back.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const NAMESPACE = 'k0s-autopilot';
const ROLLOUT = 'autopilot-autopilot';
const COUNTS = { total: 2, done: 2, failed: 0, inProgress: 0, pending: 0, skipped: 0 };
/** The leader of k0s has a machine id as its identity. */
const K0S_LEADER = '0123456789abcdef'.repeat(2);
const LINUX = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
const OF_CONTROLLER = { apiVersion: 'autopilot.k0sproject.io/v1beta2', kind: 'ControlNode' };
const SHA256 = 'ab'.repeat(32);

const things = new AsyncDisposableStack();
let client: KubeClient;
let kubeconfig: string;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-rollback-'));
  things.defer(async () => await rm(folder, { recursive: true }));
  const plane = await startSandboxPlane(folder);
  things.defer(async () => await plane.stop());
  kubeconfig = await plane.kubeconfig('admin');
  client = things.use(createClient(await loadClusterConfig({ path: kubeconfig })));
  await installDefinitions(client, systemClock);
});

afterAll(async () => await things.disposeAsync());

function runOf(more: Partial<NodeRolloutRun> = {}): NodeRolloutRun {
  return {
    id: 'id1',
    planUid: 'old-uid',
    started: later(0),
    ended: later(1000),
    phase: 'done',
    version: NEW,
    counts: COUNTS,
    before: [{ role: 'worker', version: OLD, nodes: ['w1', 'w2'] }],
    downloads: [NEW, OLD].map((version) => ({
      version,
      platform: 'linux-amd64',
      url: `https://example.com/${version}`,
      sha256: SHA256,
    })),
    ...more,
  };
}

/** Stores a NodeRollout with these runs. Without runs, deletes the NodeRollout. */
async function record(...history: readonly NodeRolloutRun[]): Promise<void> {
  await ifFound(client.delete(nodeRollouts, ROLLOUT, { namespace: NAMESPACE }));
  if (history.length === 0) return;
  const { apiVersion = '', kind = '' } = buildPlan({ commands: [] });
  await client.create(
    nodeRollouts,
    {
      apiVersion: 'upgrade.refit.dev/v1alpha1',
      kind: 'NodeRollout',
      metadata: {
        name: ROLLOUT,
        namespace: NAMESPACE,
        labels: { [DIALECT_LABEL]: 'autopilot' },
      },
      spec: { plan: { apiVersion, kind, name: 'autopilot' } },
    },
    { namespace: NAMESPACE },
  );
  const status = { phase: 'done' as const, planDeleted: later(2000), history: [...history] };
  const options = { type: 'merge', subresource: 'status', namespace: NAMESPACE } as const;
  await client.patch(nodeRollouts, ROLLOUT, { status }, options);
}

/** Replaces the worker with this name by a new one. */
async function put(name: string, kubeletVersion: string, signal?: OriginalSignal): Promise<void> {
  await ifFound(client.delete(nodes, name));
  const annotations = {
    ...(signal && buildSignal(signal)),
    [ROLLOUT_ANNOTATION]: 'old-uid/created',
  };
  const node = buildNode(name, { annotations });
  const { status: _status, ...rest } = node;
  const { uid: _uid, resourceVersion: _version, ...metadata } = rest.metadata;
  const labels = { ...metadata.labels, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
  await client.create(nodes, { ...rest, metadata: { ...metadata, labels } });
  const options = { type: 'merge', subresource: 'status' } as const;
  await client.patch(nodes, name, { status: { nodeInfo: { kubeletVersion } } }, options);
}

/** Creates a Plan, as a user does. */
async function apply(status?: Plan['status'], annotations = {}): Promise<Plan> {
  const k0supdate = buildUpdate({ version: NEW, targets: { workers: listed('w1', 'w2') } });
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  const { name } = metadata;
  const made = await client.create(plans, { ...rest, metadata: { name, annotations } });
  if (status === undefined) return made;
  const options = { type: 'merge', subresource: 'status' } as const;
  return await client.patch(plans, name, { status }, options);
}

async function rollingBack(
  flags: Partial<Parameters<typeof rollBack>[0]> = {},
  plan: string | undefined = 'autopilot',
): Promise<string> {
  let text = '';
  const write = (piece: string): void => {
    text += piece;
  };
  const output = { ...plainOutput, write };
  const abort = new AbortController().signal;
  const parts = { modules: MODULES, clock: systemClock, output, abort };
  const named = plan === '' ? {} : { plan };
  const all = { kubeconfig, apiPort: 6443, reason: 'bad release', yes: true, ...named, ...flags };
  const done = rollBack(all, parts, MODULES).then(
    () => text,
    (error: unknown) => describeProblem(error).line,
  );
  return (await done).replaceAll(/\s+/g, ' ');
}

const present = async (): Promise<Plan | undefined> =>
  await ifFound(client.get(plans, 'autopilot'));

beforeEach(async () => {
  await ifFound(client.delete(plans, 'autopilot'));
  await ifFound(client.delete(leases, LEADER_LEASE.name, { namespace: LEADER_LEASE.namespace }));
  for (const name of ['w1', 'w2']) await put(name, NEW, { status: 'Completed' });
  await record(runOf());
});

test('the Plan is gone: the NodeRollout alone says who goes back, and the Plan is created', async () => {
  const said = await rollingBack({ dryRun: 'server' });
  for (const name of ['w1', 'w2']) expect(said).toContain(`${name} worker ${NEW} ${OLD}`);
  expect(said).toContain('The Plan of run id1 was deleted, so a new Plan is created.');
  expect(said).toContain('One worker goes back at a time, because nothing records how many');
  expect(said).toContain('Nothing was written');
  expect(await present()).toBeUndefined();

  expect(await rollingBack()).toContain('The Plan that goes back is written.');
  const made = await present();
  expect(made?.metadata.annotations?.[ROLLS_BACK_ANNOTATION]).toBe('old-uid/id1');
  expect(made?.spec.commands).toEqual([
    {
      k0supdate: {
        version: OLD,
        platforms: { 'linux-amd64': { url: `https://example.com/${OLD}`, sha256: SHA256 } },
        targets: { workers: { ...listed('w1', 'w2'), limits: { concurrent: 1 } } },
      },
    },
  ]);
});

test.each(['autopilot/autopilot', 'plan/autopilot', ''])(
  'the name %j means the deleted Plan',
  async (name) => {
    expect(await rollingBack({ dryRun: 'client' }, name)).toContain(
      'The Plan of run id1 was deleted',
    );
  },
);

test('a Plan that exists is replaced, and keeps how many workers it upgrades at once', async () => {
  const state = 'Completed';
  const plan = await apply({ state, commands: [{ id: 0, state, k0supdate: {} }] });
  await record(runOf({ planUid: plan.metadata.uid ?? '' }));
  expect(await rollingBack()).toContain('The Plan is replaced, and its record is lost');
  expect((await present())?.metadata.uid).not.toBe(plan.metadata.uid);
});

test('refused runs are passed over, and --run names any run', async () => {
  const refused = runOf({ id: 'back-1', planUid: 'refused-uid', phase: 'invalid', version: OLD });
  await record(refused, runOf());
  expect(await rollingBack({ dryRun: 'client' })).toContain('Run id1 goes back');
  const again = [{ role: 'worker' as const, version: NEW, nodes: ['w1', 'w2'] }];
  await record(runOf({ id: 'id2', before: again }), runOf());
  expect(await rollingBack({ dryRun: 'client', run: 'id1' })).toContain('Run id1 goes back');
  expect(await rollingBack({ run: 'id9' })).toContain('has no run id9; it has id2, id1');
  await record(refused);
  expect(await rollingBack()).toContain('has no run of this plan; it has back-1');
});

test('a node that a later run moved stays where it is', async () => {
  const before = [{ role: 'worker' as const, version: 'v1.36.1+k0s.0', nodes: ['w1'] }];
  await record(runOf({ id: 'id2', planUid: 'new-uid', before }), runOf());
  const said = await rollingBack({ dryRun: 'client', run: 'id1' });
  expect(said).toContain(`w2 worker ${NEW} ${OLD}`);
  expect(said).not.toContain(`w1 worker ${NEW} ${OLD}`);
  expect(said).toContain('not rolled back: w1 was moved later by run id2');
});

test('a run that rolled another one back says so', async () => {
  await record(runOf({ id: 'back-1', rollsBack: { run: 'older-uid/id1' } }), runOf());
  expect(await rollingBack({ dryRun: 'client' })).toContain(
    'Run back-1 itself rolled run id1 back. To go further back instead, pass --run id1',
  );
  for (const name of ['w1', 'w2']) await put(name, OLD, { status: 'Failed' });
  expect(await rollingBack()).toContain('and name this run or run id1 with --run');
});

test('a way back that did not end well is neither gone on with nor undone without the name of a run', async () => {
  const rollsBack = { run: 'old-uid/id1' };
  const back = runOf({ id: 'back-1', planUid: 'back-uid', phase: 'failed', rollsBack });
  await record(back, runOf());
  for (const name of ['', 'autopilot'])
    expect(await rollingBack({}, name)).toContain(
      'run back-1 rolled run id1 back and ended as failed, so it is not clear which of them you mean (to continue that roll-back, pass --run id1; to undo it, pass --run back-1)',
    );
  expect(await present()).toBeUndefined();
  for (const run of ['id1', 'back-1'])
    expect(await rollingBack({ dryRun: 'client', run })).toContain(`Run ${run} goes back`);

  const state = 'ApplyFailed';
  const plan = await apply({ state, commands: [{ id: 0, state, k0supdate: {} }] });
  const { uid = '' } = plan.metadata;
  await record({ ...back, planUid: uid }, runOf());
  expect(await rollingBack()).toContain('it is not clear which of them you mean');
  expect((await present())?.metadata.uid).toBe(uid);
});

test('without a NodeRollout nothing shows where to go', async () => {
  await record();
  const line = await rollingBack();
  expect(line).toContain(
    'REFIT_CONTROL: there is no plan autopilot, and no NodeRollout of a deleted plan records what its nodes ran before',
  );
  expect(await rollingBack({}, 'other')).toContain('there is no plan other (run');
});

test('work of the deleted Plan is waited for, and so is the record of its end', async () => {
  await put('w2', NEW, { status: 'Restart' });
  const line = await rollingBack();
  expect(line).toContain('deleted while nodes worked for it, and w2 has not finished');
  expect(line).toContain('kubectl annotate node w2 k0sproject.io/autopilot-signal-data-');
  await put('w2', NEW, { status: 'Completed' });
  const { ended: _ended, ...open } = runOf();
  await record(open);
  expect(await rollingBack()).toContain('has not recorded yet that run id1 of the deleted Plan');
  expect(await present()).toBeUndefined();
});

test("k0s's own leader, undecided nodes and wrong downloads are refused as with a Plan", async () => {
  const spec = {
    holderIdentity: K0S_LEADER,
    leaseDurationSeconds: 3600,
    renewTime: microTime(systemClock.now()),
  };
  const { name, namespace } = LEADER_LEASE;
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
  await client.create(leases, { ...lease, metadata: { name, namespace }, spec }, { namespace });
  expect(await rollingBack()).toContain(`k0s's own leader (${K0S_LEADER}) carries plans out`);
  await client.delete(leases, name, { namespace });

  const wrong = { url: ['linux-amd64=ftp://e/x'], sha256: [`linux-amd64=${SHA256}`] };
  expect(await rollingBack(wrong)).toContain('REFIT_USAGE: spec.commands[0]');
  await put('w2', OLD, { status: 'Completed', command: { version: NEW } });
  expect(await rollingBack()).toContain('not every node of the run can go back: w2 reported');
  expect(await present()).toBeUndefined();
});

test.each<['client' | 'server' | undefined]>([['client'], ['server'], [undefined]])(
  'nothing is replaced if a node cannot go back, unless the user leaves it out (--dry-run %s)',
  async (dryRun) => {
    const state = 'Completed';
    const plan = await apply({ state, commands: [{ id: 0, state, k0supdate: {} }] });
    const planUid = plan.metadata.uid ?? '';
    const before = [{ role: 'worker' as const, version: OLD, nodes: ['w1', 'w2', 'w3'] }];
    await record(runOf({ planUid, before }));
    const flags = dryRun === undefined ? {} : { dryRun };
    expect(await rollingBack(flags)).toContain(
      'REFIT_CONTROL: nothing was replaced, because not every node of the run can go back: w3: the cluster has no Node with this name (run this again when w3 is in the cluster again; or let the other nodes go back without w3: --skip-node w3)',
    );
    expect((await present())?.metadata.uid).toBe(planUid);
    expect(await rollingBack({ ...flags, skipNode: ['w9'] })).toContain('--skip-node w9: no node');
    expect(await rollingBack({ ...flags, skipNode: ['w3'] })).toContain(
      'not rolled back: w3: the cluster has no Node with this name',
    );
    expect((await present())?.metadata.uid === planUid).toBe(dryRun !== undefined);
  },
);

test.each<['client' | 'server' | undefined]>([['client'], ['server'], [undefined]])(
  'what the leader would refuse is refused before a Plan is replaced (--dry-run %s)',
  async (dryRun) => {
    const state = 'Completed';
    const plan = await apply({ state, commands: [{ id: 0, state, k0supdate: {} }] });
    const planUid = plan.metadata.uid ?? '';
    const before = [
      { role: 'worker' as const, version: OLD, nodes: ['w1'] },
      { role: 'controller' as const, version: OLD, nodes: ['c1'] },
    ];
    await record(runOf({ planUid, before }));
    const metadata = { name: 'c1', labels: LINUX };
    await client.create(controlNodes, { ...OF_CONTROLLER, metadata });
    const options = { type: 'merge', subresource: 'status' } as const;
    const status = { addresses: [], k0sVersion: NEW };
    await client.patch(controlNodes, 'c1', { status }, options);
    try {
      const flags = { ...(dryRun === undefined ? {} : { dryRun }), skipNode: ['w1'] };
      const said = await rollingBack(flags);
      expect(said).toContain(
        `REFIT_CONTROL: the leader would refuse the plan that goes back: w1 reported that ${NEW} is installed, which is newer than ${OLD}, and this plan does not roll the node back.`,
      );
      expect((await present())?.metadata.uid).toBe(planUid);
    } finally {
      await client.delete(controlNodes, 'c1');
    }
  },
);

test('only workers go back, so nothing is said about controllers', async () => {
  const said = await rollingBack({ dryRun: 'client' });
  expect(said).toContain('Run id1 goes back: NODE');
});

test('a flag for plans of another dialect is refused', async () => {
  const named = '--image is for Plans of Rancher';
  expect(await rollingBack({ image: 'a/b' })).toContain(named);
  expect(await present()).toBeUndefined();

  const place = { namespace: NAMESPACE };
  const metadata = { name: 'p', ...place };
  const { status: _status, ...made } = buildCattlePlan('p');
  await client.create(cattlePlans, { ...made, metadata }, place);
  const flags = { url: ['linux-amd64=https://e/x'] };
  expect(await rollingBack(flags, `cattle/${NAMESPACE}/p`)).toContain(
    '--url and --sha256 are for k0s Plans',
  );
  await client.delete(cattlePlans, 'p', place);
});

/** Returns what `refit why` prints, on one line. */
async function why(): Promise<string> {
  let text = '';
  const write = (piece: string): void => {
    text += piece;
  };
  const abort = new AbortController().signal;
  const parts = {
    modules: MODULES,
    clock: systemClock,
    output: { ...plainOutput, write },
    abort,
  };
  await showWhy(undefined, { kubeconfig, apiPort: 6443 }, parts);
  return text.replaceAll(/\s+/g, ' ');
}

const BACK = { [ROLLS_BACK_ANNOTATION]: 'old-uid/id1' };
const DONE_AND_GONE = [
  { name: 'w1', state: 'SignalCompleted', lastUpdatedTimestamp: later(0) },
  { name: 'w9', state: 'SignalApplyFailed', lastUpdatedTimestamp: later(0) },
];

test.each<[string, string, string, Readonly<Record<string, string>>]>([
  ['was refused', 'Warning', `Downgrade: w1 would get ${NEW}`, {}],
  ['lost a node', 'ApplyFailed', 'w9: there is no such node', {}],
  ['was aborted', 'ApplyFailed', 'Aborted: no', { [ABORT_ANNOTATION]: 'no' }],
])('a Plan that goes back and %s: why names the command that goes on', async (...row) => {
  const [, state, description, annotations] = row;
  const k0supdate = state === 'Warning' ? {} : { workers: DONE_AND_GONE };
  const commands = [{ id: 0, state, description, k0supdate }];
  const bad = await apply({ state, commands }, { ...BACK, ...annotations });
  const { uid = '' } = bad.metadata;
  const own = runOf({
    id: 'back-1',
    planUid: uid,
    phase: 'invalid',
    rollsBack: { run: 'old-uid/id1' },
  });
  // The same file was applied twice, so two runs have this id.
  const first = runOf({ planUid: 'first-uid', started: later(-1000) });
  await record(own, runOf(), first);

  const said = await why();
  expect(said).not.toContain('delete the Plan');
  const [, plan, run] = /refit rollback (\S+) --run (\S+) --reason TEXT/.exec(said) ?? [];
  expect({ plan, run }).toEqual({ plan: 'autopilot', run: 'old-uid/id1' });
  expect(await rollingBack({ run: run ?? '' }, plan)).toContain(
    'The Plan that goes back is written',
  );
  const made = await present();
  expect(made?.metadata.uid).not.toBe(uid);
  expect(made?.metadata.annotations).toMatchObject(BACK);

  // Somebody deletes the Plan. The command then finds the run, although the user names no plan.
  await client.delete(plans, 'autopilot');
  expect(await rollingBack()).toContain('Run id1 goes back');
  expect((await present())?.metadata.annotations).toMatchObject(BACK);
});

test.each([0, 1])(
  'a Plan that appears after %i checks by the API server stays as it is',
  async (checks) => {
    const abort = new AbortController().signal;
    const output = { ...plainOutput, write: () => undefined };
    const parts = { modules: MODULES, clock: systemClock, output, abort };
    const flags = { kubeconfig, apiPort: 6443, reason: 'bad release', yes: true };
    let uid: string | undefined;
    const done = inSession(flags, parts, 'test', async (session) => {
      const deleted = deletedK0sPlan(session, 'autopilot');
      if (deleted === undefined) throw new Error('the Plan is not taken for a deleted one');
      let calls = 0;
      const create: KubeClient['create'] = async (...call) => {
        if (calls++ === checks) uid = (await apply()).metadata.uid;
        return await session.client.create(...call);
      };
      const beside = { ...session, client: { ...session.client, create } };
      await rollBackDeletedK0sPlan(beside, deleted, flags, parts);
    });
    await expect(done).rejects.toThrow('a Plan was created meanwhile, so nothing was written');
    expect((await present())?.metadata.uid).toBe(uid);
  },
);
