/**
 * Tests on a real API server, with the documented rights, that Refit checks versions before each node if they change
 * while a plan runs.
 */
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { createControlNode, deleteObjects, reportReady } from '../../sandbox/cluster/objects.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import { CONDITIONS_ANNOTATION } from '../../src/engine/model/written-conditions.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { controlNodes } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

/** The puppets run this version, which is one minor version before NEXT. */
const NOW = 'v1.36.3+k0s.0';
const NEXT = 'v1.37.1+k0s.0';
const TOO_NEW = 'v1.38.0+k0s.0';
const CONTROLLER = 'version-c1';

let admin: KubeClient;
let controller: RefitProcess;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await createControlNode(admin, CONTROLLER, '127.0.0.11');
  await runs(NEXT);
  const path = await kubeconfigFor('controller');
  controller = new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
});

afterAll(async () => {
  expect(await controller.stop('SIGTERM')).toBe(0);
  await deleteObjects(admin, CONTROLLER);
  admin.close();
});

/** Writes the version to the ControlNode of the controller, as its agent would. */
async function runs(k0sVersion: string): Promise<void> {
  await admin.patch(
    controlNodes,
    CONTROLLER,
    { status: { k0sVersion } },
    { type: 'merge', subresource: 'status' },
  );
}

const conditions = async (): Promise<string | undefined> =>
  (await admin.get(plans, 'autopilot')).metadata.annotations?.[CONDITIONS_ANNOTATION];
const stateOf = async (): Promise<string | undefined> =>
  (await admin.get(plans, 'autopilot')).status?.state;

test('a plan that is edited to skip a minor version starts no other node and ends with the rule', async () => {
  await using puppets = await Puppets.create(admin, 'version-w1', 'version-w2');
  await puppets.plan(1, { version: NEXT });
  await puppets.says('version-w1', 'Restart');

  const edit = JSON.stringify([
    { op: 'replace', path: '/spec/commands/0/k0supdate/version', value: TOO_NEW },
  ]);
  const plan = 'plans.autopilot.k0sproject.io';
  expect(
    (await kubectlAs('operator', ['patch', plan, 'autopilot', '--type=json', '-p', edit])).ok,
  ).toBe(true);
  await puppets.says('version-w1', 'Completed');

  expect(await puppets.end()).toEqual({
    state: 'Warning',
    description: `SkippedMinor: version-w2 would go from ${kubernetesPartOf(NOW)} past 1.37 to ${TOO_NEW} (rule SkippedMinor; versions.allow: [SkippedMinor] of an UpgradePolicy allows it)`,
  });
  expect(await puppets.recorded()).toEqual({
    'version-w1': 'SignalCompleted',
    'version-w2': 'SignalPending',
  });
  expect(await puppets.signal('version-w2')).toBeUndefined();
});

test('a node waits while the ControlNode of a controller reports a version older than its new kubelet', async () => {
  // On a busy machine, this test has made no progress in rare cases. The log of the controller then shows the reason.
  onTestFailed(() => console.error(controller.stderr.slice(-20).join('\n')));
  await using puppets = await Puppets.create(admin, 'version-w3', 'version-w4');
  await puppets.plan(1, { version: NEXT });
  await puppets.says('version-w3', 'Restart');
  // Only changes of one kind arrive in order. So the test first makes the second node not Ready. The leader observes
  // this before it observes that the first node is done. The second node is therefore held until the leader knows the
  // old version of the controller.
  const notReady = { status: { conditions: [{ type: 'Ready', status: 'False' }] } };
  await admin.patch(nodes, 'version-w4', notReady, { type: 'merge', subresource: 'status' });
  await runs(NOW);
  await puppets.says('version-w3', 'Completed');
  await puppets.until(async () => expect(await conditions()).toContain('"reason":"KubeletAhead"'));
  // From now on, only a change of the ControlNode can cause a new decision about the plan.
  await reportReady(admin, 'version-w4', NOW, rfc3339(Date.now()));

  await puppets.until(async () =>
    expect(await puppets.recorded()).toEqual({
      'version-w3': 'SignalCompleted',
      'version-w4': 'SignalPending',
    }),
  );
  expect(await stateOf()).toBe('Schedulable');
  const { stdout } = await runRefit('why', '--kubeconfig', await kubeconfigFor('viewer'));
  expect(stdout.join('\n')).toContain(
    `version-w4 would have a kubelet of ${NEXT}, newer than the API server of ${CONTROLLER} (${NOW}) (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)`,
  );
  expect(await puppets.signal('version-w4')).toBeUndefined();

  await runs(NEXT);
  await puppets.says('version-w4', 'Completed');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
});
