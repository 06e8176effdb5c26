/** Tests `nodeConditions` of a policy on a real API server: which conditions the Nodes have, also after a leader was killed. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { events, leases, nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess } from './refit-process.ts';

const POLICY = 'conditions';
const RIGHTS = 'deploy/rbac-node-conditions.yaml';

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await admin.delete(leases, LEADER_LEASE.name, LEADER_LEASE).catch(() => undefined);
  await admin.create(
    upgradePolicies,
    buildUpgradePolicy(POLICY, { plans: [{ dialect: 'autopilot' }], nodeConditions: true }),
  );
});
afterAll(async () => {
  await admin.delete(upgradePolicies, POLICY);
  admin.close();
});

async function lead(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  const leader = new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '3s');
  onTestFinished(async () => void (await leader.stop('SIGKILL')));
  return leader;
}

async function grant(): Promise<void> {
  await apply(await readFile(RIGHTS, 'utf8'));
  onTestFinished(async () => void (await kubectlAs('admin', ['delete', '-f', RIGHTS])));
}

/** The lifecycle conditions that are True. */
async function shown(name: string): Promise<readonly string[]> {
  const { conditions = [] } = (await admin.get(nodes, name)).status ?? {};
  expect(conditions.find(({ type }) => type === 'Ready')?.status).toBe('True');
  return conditions.flatMap(({ type, status }) =>
    status === 'True' && /Maintenance|Drain/.test(type) ? type : [],
  );
}

async function shows(puppets: Puppets, expected: Readonly<Record<string, readonly string[]>>) {
  await puppets.until(async () => {
    for (const [name, types] of Object.entries(expected))
      expect([name, new Set(await shown(name))]).toEqual([name, new Set(types)]);
  });
}

test('each step of the drain and the upgrade, although the leader is killed in the middle of the drain', async () => {
  await grant();
  await using puppets = await Puppets.create(admin, 'cond-w1', 'cond-w2');
  const pod = await puppets.addLastingPod('cond-w1');
  const first = await lead();
  await puppets.plan(1);
  await puppets.says('cond-w1', 'Downloading');
  await shows(puppets, { 'cond-w1': ['MaintenanceInProgress'], 'cond-w2': ['MaintenancePlanned'] });
  await puppets.says('cond-w1', 'Cordoning');
  const draining = ['MaintenanceInProgress', 'DrainInProgress'];
  await shows(puppets, { 'cond-w1': draining, 'cond-w2': ['MaintenancePlanned'] });

  await first.stop('SIGKILL');
  await lead();
  await puppets.release(pod);
  await shows(puppets, { 'cond-w1': ['MaintenanceInProgress', 'Drained'] });
  const { conditions = [] } = (await admin.get(nodes, 'cond-w1')).status ?? {};
  expect(conditions.find(({ type }) => type === 'Drained')).toMatchObject({
    reason: 'RefitUpgrade',
    message: expect.stringMatching(/^set by Refit for autopilot\/\/autopilot\//) as string,
  });
  // The leader uncordons the node, and then reports that the upgrade of the node is complete.
  await puppets.says('cond-w1', 'UnCordoning');
  await shows(puppets, { 'cond-w1': [], 'cond-w2': ['MaintenanceInProgress'] });
  await puppets.says('cond-w2', 'Completed');
  await puppets.end();
  await shows(puppets, { 'cond-w1': [], 'cond-w2': [] });
}, 300_000);

test('the next leader clears the conditions of a Plan that was deleted while nobody led', async () => {
  await grant();
  await using puppets = await Puppets.create(admin, 'cond-w3', 'cond-w4');
  const first = await lead();
  await puppets.plan(1);
  await shows(puppets, { 'cond-w3': ['MaintenanceInProgress'], 'cond-w4': ['MaintenancePlanned'] });
  await first.stop('SIGKILL');
  await admin.delete(plans, 'autopilot');
  await lead();
  await shows(puppets, { 'cond-w3': [], 'cond-w4': [] });
}, 300_000);

test('without the right, the Plan goes on, and an Event names the command that prints it', async () => {
  await using puppets = await Puppets.create(admin, 'cond-w5');
  await lead();
  await puppets.plan(1);
  await puppets.says('cond-w5', 'Completed');
  await puppets.end();
  expect(await shown('cond-w5')).toEqual([]);
  await puppets.until(async () => {
    const { items } = await admin.list(events, { namespace: 'default' });
    const told = items.map(({ reason, message }) => `${reason} ${message}`);
    expect(told.join('\n')).toMatch(
      /TargetRefused cond-w5: .*cannot patch resource "nodes\/status".*`refit install rights node-conditions` prints this right/,
    );
  });
}, 300_000);
