/**
 * Tests `onFailure: RollBack` on a real API server: which nodes are rolled back, that the roll-back happens only once
 * if the leader is killed, and when Refit starts no roll-back.
 */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { reportReady } from '../../sandbox/cluster/objects.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import { ROLLS_BACK_ANNOTATION } from '../../src/engine/model/earlier-versions.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { decodeSignal, encodeReport, encodeSignal } from '../../src/signal/annotations.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const OLDEST = 'v1.36.1+k0s.0';
const OLDER = 'v1.36.2+k0s.0';
const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const POLICY = 'roll-back';

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await vi.waitFor(async () => await admin.list(upgradePolicies, { limit: 1 }), PATIENCE);
  await admin.create(upgradePolicies, buildUpgradePolicy(POLICY, { onFailure: 'RollBack' }));
});

afterAll(async () => {
  await admin.delete(upgradePolicies, POLICY);
  admin.close();
});

async function startLeader(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

/** The build that each node runs. Its kubelet does not report it. */
const builds = new Map<string, string>();

async function runs(name: string, version: string): Promise<void> {
  builds.set(name, version);
  await reportReady(admin, name, version, rfc3339(systemClock.now()));
}

/** Waits until the node has a signal for the version, and then reports this end as its agent would. */
async function ends(name: string, version: string, end: 'Completed' | 'Failed'): Promise<void> {
  const signal = await vi.waitFor(async () => {
    const found = decodeSignal((await admin.get(nodes, name)).metadata.annotations);
    expect(found?.command.version).toBe(version);
    expect(found?.status).toBeUndefined();
    return found;
  }, PATIENCE);
  if (signal === undefined) throw new Error('unreachable');
  const from = builds.get(name);
  if (end === 'Completed') await runs(name, version);
  const status = { status: end, timestamp: rfc3339(systemClock.now()) };
  const annotations = {
    ...encodeSignal({ ...signal, status }),
    ...encodeReport({ created: signal.created, ...(from === undefined ? {} : { from }) }),
  };
  await admin.patch(nodes, name, { metadata: { annotations } }, { type: 'merge' });
}

async function start(version: string, workers: readonly string[]): Promise<string | undefined> {
  const targets = { workers: { ...listed(...workers), limits: { concurrent: 1 } } };
  const k0supdate = buildUpdate({ version, targets });
  const { metadata, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  const made = await admin.create(plans, { ...rest, metadata: { name: metadata.name } });
  // These agents report their previous version only at the end. So the test lets them start only after the leader has
  // recorded what their kubelets show.
  await vi.waitFor(async () => {
    const own = (await history()).find(({ planUid }) => planUid === made.metadata.uid);
    expect(own?.before).toBeDefined();
  }, PATIENCE);
  return made.metadata.uid;
}

/**
 * Upgrades all workers to the version, and deletes the Plan. The history of the Plan shows from where the files of this
 * version come.
 */
async function upgraded(puppets: Puppets, version: string): Promise<void> {
  await start(version, puppets.names);
  for (const name of puppets.names) await ends(name, version, 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  await vi.waitFor(async () => expect((await history())[0]?.ended).toBeDefined(), PATIENCE);
  await admin.delete(plans, 'autopilot');
}

async function history() {
  const { items } = await admin.list(nodeRollouts);
  return items.find(({ spec }) => spec.plan.name === 'autopilot')?.status?.history ?? [];
}

async function annotation(): Promise<string | undefined> {
  return (await admin.get(plans, 'autopilot')).metadata.annotations?.[ROLLS_BACK_ANNOTATION];
}

async function eventsOf(reason: string): Promise<string[]> {
  const lines = 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}';
  const { stdout } = await kubectlAs('viewer', ['get', 'events', '-A', '-o', lines]);
  return stdout.split('\n').filter((line) => line.startsWith(`${reason} `));
}

async function printed(command: string): Promise<string> {
  const path = await kubeconfigFor('viewer');
  const { stdout } = await runRefit(command, '--kubeconfig', path);
  return stdout.join(' ').replaceAll(/\s+/g, ' ');
}

/**
 * Deletes Events and the history of plans with the same name. Other test files, and an earlier attempt of a test, may
 * have left them.
 */
async function forgetEarlierPlans(): Promise<void> {
  await kubectlAs('admin', ['delete', 'noderollouts', '--all', '-A']);
  await kubectlAs('admin', ['delete', 'events', '--all', '-A']);
}

test('nodes that moved go back once, although the leader is killed, and a failed roll-back is not rolled back', async () => {
  await using puppets = await Puppets.create(admin, 'auto-w1', 'auto-w2', 'auto-w3');
  await forgetEarlierPlans();
  onTestFinished(forgetEarlierPlans);
  for (const name of puppets.names) await runs(name, OLDER);
  await using first = await startLeader();
  await upgraded(puppets, OLD);

  const uid = await start(NEW, puppets.names);
  await ends('auto-w1', NEW, 'Completed');
  await vi.waitFor(
    async () =>
      expect(await printed('why')).toContain('the plan stops and Refit rolls its nodes back'),
    PATIENCE,
  );
  await ends('auto-w2', NEW, 'Failed');
  await vi.waitFor(async () => expect(await annotation()).toBe(`${uid}/id1`), PATIENCE);
  await first.stop('SIGKILL');
  await using second = await startLeader();
  await ends('auto-w1', OLD, 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect((await admin.get(plans, 'autopilot')).metadata.uid).toBe(uid);
  expect((await puppets.signal('auto-w3'))?.command.version).toBe(OLD);

  await vi.waitFor(async () => {
    const [back, failed] = await history();
    expect(back).toMatchObject({
      phase: 'done',
      rollsBack: {
        run: `${uid}/id1`,
        reason: expect.stringMatching(/^the policy roll-back: 1 node failed \(auto-w2\)/),
      },
    });
    expect(failed).toMatchObject({ id: 'id1', planUid: uid, phase: 'failed', version: NEW });
  }, PATIENCE);
  expect(await history()).toHaveLength(3);
  // The leader may have been killed before it wrote its Event.
  expect((await eventsOf('RollsBack')).length).toBeLessThan(2);
  expect(await printed('status')).toContain(
    'this plan rolls run id1 back, says the policy roll-back',
  );

  await admin.delete(plans, 'autopilot');
  await start(NEW, puppets.names);
  await ends('auto-w1', NEW, 'Completed');
  await ends('auto-w2', NEW, 'Failed');
  await ends('auto-w1', OLD, 'Failed');
  expect(await puppets.end()).toMatchObject({ state: 'ApplyFailed' });
  await vi.waitFor(async () => {
    const [said] = await eventsOf('RollBackRefused');
    expect(said).toContain('this run itself rolls an earlier run back');
  }, PATIENCE);
  expect((await eventsOf('RollsBack')).join()).toContain(
    'the policy roll-back: 1 node failed (auto-w2)',
  );
  expect(await history()).toHaveLength(5);
  expect(await second.stop('SIGTERM')).toBe(0);
});

test('a failed upgrade to another patch is rolled back to the build that the workers ran before', async () => {
  await using puppets = await Puppets.create(admin, 'patch-w1', 'patch-w2');
  await forgetEarlierPlans();
  onTestFinished(forgetEarlierPlans);
  for (const name of puppets.names) await runs(name, OLDEST);
  await using leader = await startLeader();
  await upgraded(puppets, OLDER);

  const uid = await start(OLD, puppets.names);
  await ends('patch-w1', OLD, 'Completed');
  await ends('patch-w2', OLD, 'Failed');
  await ends('patch-w1', OLDER, 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  await vi.waitFor(async () => {
    const [back, failed] = await history();
    expect(back).toMatchObject({ phase: 'done', rollsBack: { run: `${uid}/id1` } });
    expect(failed?.before).toEqual([
      { role: 'worker', version: OLDER, nodes: ['patch-w1', 'patch-w2'] },
    ]);
  }, PATIENCE);
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('without a known download of the version before, the plan stops and says what to do', async () => {
  await using puppets = await Puppets.create(admin, 'bare-w1', 'bare-w2');
  onTestFinished(
    async () => void (await kubectlAs('admin', ['delete', 'noderollouts', '--all', '-A'])),
  );
  for (const name of puppets.names) await runs(name, OLDER);
  await using leader = await startLeader();
  const uid = await start(OLD, puppets.names);
  await ends('bare-w1', OLD, 'Completed');
  await ends('bare-w2', OLD, 'Failed');
  expect(await puppets.end()).toMatchObject({ state: 'ApplyFailed' });
  const words = `acts as Stop: no recorded run downloaded ${OLDER} for linux-amd64`;
  await vi.waitFor(
    async () => expect((await eventsOf('RollBackRefused')).join()).toContain(words),
    PATIENCE,
  );
  expect(await printed('why')).toContain(words);
  expect((await admin.get(plans, 'autopilot')).metadata).toMatchObject({ uid, generation: 1 });
  expect(await leader.stop('SIGTERM')).toBe(0);
});
