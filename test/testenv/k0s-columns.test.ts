/** Tests the columns that `kubectl get` shows for k0s Plans and ControlNodes, as far as their schema allows columns. */
import { expect, onTestFinished, test } from 'vitest';
import { createControlNode } from '../../sandbox/cluster/objects.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { MESSAGE_ANNOTATION } from '../../src/engine/model/written-conditions.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';

const PLAN = 'k0s-columns';
const NODE = 'k0s-columns-c1';
const WHY = 'node w1 has no platform linux-riscv64';

/** Returns the rows of the table, without the age. */
async function shown(kind: string, name: string): Promise<string[][]> {
  const { stdout } = await kubectlAs('admin', ['get', kind, name]);
  const rows = stdout.trim().split('\n');
  return rows.map((row) => row.split(/ {2,}/).slice(0, -1));
}

test('a Plan shows its state, its version, and the message of its leader without the JSON of the record', async () => {
  await installKinds();
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(async () => {
    await admin.delete(plans, PLAN);
    admin.close();
  });
  const bundle = { version: 'v1.36.3', platforms: {}, workers: { discovery: {} } };
  const update = { version: 'v1.36.3+k0s.0', platforms: {}, targets: {} };
  await admin.create(plans, {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'Plan',
    metadata: { name: PLAN },
    spec: {
      id: 'id',
      timestamp: 'now',
      commands: [{ airgapupdate: bundle }, { k0supdate: update }],
    },
  });
  const version = 'v1.36.3+k0s.0';
  expect(await shown('plans.autopilot.k0sproject.io', PLAN)).toEqual([
    ['NAME', 'STATE', 'VERSION', 'MESSAGE'],
    [PLAN, version],
  ]);
  const commands = [
    { id: 0, state: 'Completed' },
    { id: 1, state: 'InconsistentTargets', description: '{"run":2,"generation":2}' },
  ];
  const annotations = { [MESSAGE_ANNOTATION]: WHY };
  await admin.patch(plans, PLAN, { metadata: { annotations } }, { type: 'merge' });
  await admin.patch(
    plans,
    PLAN,
    { status: { state: 'InconsistentTargets', commands } },
    { type: 'merge', subresource: 'status' },
  );
  expect((await shown('plans.autopilot.k0sproject.io', PLAN))[1]).toEqual([
    PLAN,
    'InconsistentTargets',
    version,
    WHY,
  ]);
});

test('a ControlNode shows the version that it runs', async () => {
  await installKinds();
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(async () => {
    await admin.delete(controlNodes, NODE);
    admin.close();
  });
  await createControlNode(admin, NODE, '127.0.0.1');
  await admin.patch(
    controlNodes,
    NODE,
    { status: { k0sVersion: 'v1.36.3+k0s.0' } },
    { type: 'merge', subresource: 'status' },
  );
  expect(await shown('controlnodes', NODE)).toEqual([
    ['NAME', 'VERSION'],
    [NODE, 'v1.36.3+k0s.0'],
  ]);
});
