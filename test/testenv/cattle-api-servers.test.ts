/** Tests on a real control plane that a Plan of K3s starts no server while an API server does not answer. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { reportReady } from '../../sandbox/cluster/objects.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { installKinds, NAMESPACE, planOf } from './cattle-rig.ts';
import { CattleScene, PATIENCE } from './cattle-scene.ts';
import { apply, kubeconfigFor } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const FROM = 'v1.36.2+k3s1';
const TO = 'v1.36.3+k3s1';
const PLAN = 'api-servers';
const FIRST = 'api-server-1';
const SECOND = 'api-server-2';
const SERVERS = [FIRST, SECOND];
/** The real API server listens here. */
const UP = '127.0.0.1';
/** Nothing listens here. */
const DOWN = '127.0.0.200';

let scene: CattleScene;
beforeAll(async () => {
  scene = await CattleScene.open({ servers: SERVERS }, async () => {
    await installKinds();
    // The Nodes of the tests are simulated, and the rules leave such Nodes out by default.
    const metadata = { name: PLAN };
    const policy = { apiVersion: 'upgrade.refit.dev/v1alpha1', kind: 'UpgradePolicy', metadata };
    await apply(JSON.stringify({ ...policy, spec: { virtualNodes: 'Count' } }));
  });
  const labels = { 'node-role.kubernetes.io/control-plane': 'true' };
  for (const name of SERVERS) {
    await scene.admin.patch(nodes, name, { metadata: { labels } }, { type: 'merge' });
    await runs(name, FROM);
    await listensAt(name, UP);
  }
});
afterAll(async () => {
  await scene.admin.delete(upgradePolicies, PLAN);
  await scene.close();
});

async function runs(name: string, version: string): Promise<void> {
  await reportReady(scene.admin, name, version, rfc3339(systemClock.now()));
}

/** Sets the address at which the API server of this Node answers. */
async function listensAt(name: string, address: string): Promise<void> {
  const patch = { status: { addresses: [{ type: 'InternalIP', address }] } } as never;
  await scene.admin.patch(nodes, name, patch, { type: 'merge', subresource: 'status' });
}

async function started(): Promise<(string | undefined)[]> {
  const jobs = await scene.jobsOf(PLAN);
  return jobs.map(({ metadata }) => metadata.labels?.['upgrade.cattle.io/node']);
}

/** Resolves when `refit why` says that the Plan waits for the API server of this Node. */
async function waitsFor(name: string): Promise<void> {
  const kubeconfig = await kubeconfigFor('operator');
  const { port } = new URL((await loadClusterConfig({ path: kubeconfig })).server);
  const plan = `cattle/${NAMESPACE}/${PLAN}`;
  const line = ['why', '--plan', plan, '--kubeconfig', kubeconfig, '--api-port', port];
  await vi.waitFor(async () => {
    const { stdout } = await runRefit(...line);
    expect(stdout.join(' ').replaceAll(/\s+/g, ' ')).toContain(`API server of ${name}`);
  }, PATIENCE);
}

test('no server starts while the API server of another one does not answer, and after the first one each API server is asked again', async () => {
  await listensAt(SECOND, DOWN);
  await scene.apply(planOf(PLAN, { version: TO, upgrade: { image: 'rancher/k3s-upgrade' } }));
  await scene.until(PLAN, 'RefitWaits', 'True', 'Gate');
  await waitsFor(SECOND);
  expect(await started()).toEqual([]);
  await listensAt(SECOND, UP);
  await vi.waitFor(async () => expect(await started()).toEqual([FIRST]), PATIENCE);
  // The upgrade of the first server has broken its API server.
  await listensAt(FIRST, DOWN);
  await runs(FIRST, TO);
  await listensAt(FIRST, DOWN);
  await waitsFor(FIRST);
  expect(await started()).toEqual([FIRST]);
  await listensAt(FIRST, UP);
  await vi.waitFor(async () => expect(await started()).toContain(SECOND), PATIENCE);
  await runs(SECOND, TO);
  await scene.until(PLAN, 'Complete', 'True', 'Complete');
});
