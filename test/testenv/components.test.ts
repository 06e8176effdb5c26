/**
 * Tests on a real API server that no node starts while a component of the control plane does not renew its Lease, with
 * the controller of Refit and the rights of its role.
 */
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const NAME = 'kube-controller-manager';
const WHERE = { namespace: 'kube-system' };

beforeAll(async () => {
  await installKinds();
});

test('no worker starts while nobody renews the Lease of the controller manager, and it starts after the next renewal', async () => {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  const long = new Date(Date.now() - 3_600_000).toISOString().replace('Z', '000Z');
  const spec = { holderIdentity: 'c1', leaseDurationSeconds: 1, renewTime: long };
  await admin.create(leases, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: NAME, ...WHERE },
    spec,
  });
  onTestFinished(async () => await admin.delete(leases, NAME, WHERE));
  await using puppets = await Puppets.create(admin, 'component-w1');
  await using leader = new RefitProcess(
    'controller',
    '--kubeconfig',
    await kubeconfigFor('controller'),
  );
  await puppets.plan(1);

  const stopped = `${NAME} does not work: nobody has renewed its Lease kube-system/${NAME}`;
  const viewer = await kubeconfigFor('viewer');
  const why = async (): Promise<string> =>
    (await runRefit('why', 'component-w1', '--kubeconfig', viewer)).stdout.join('\n');
  await vi.waitFor(async () => expect(await why()).toContain(stopped), PATIENCE);
  const { stdout } = await kubectlAs('viewer', ['get', 'plan', 'autopilot']);
  expect(stdout).toContain(stopped);
  expect(await puppets.signal('component-w1')).toBeUndefined();

  let renewals = 0;
  await vi.waitFor(async () => {
    const renewTime = new Date(Date.parse(long) + ++renewals * 1000).toISOString();
    await admin.patch(
      leases,
      NAME,
      { spec: { renewTime: renewTime.replace('Z', '000Z') } },
      { type: 'merge', ...WHERE },
    );
    expect(await puppets.signal('component-w1')).toBeDefined();
  }, PATIENCE);
  await puppets.says('component-w1', 'Completed');
  expect(await puppets.end()).toEqual({ state: 'Completed', description: undefined });
  expect(await leader.stop('SIGTERM')).toBe(0);
});
