/** Tests `versions.pin` of a policy on a real API server, with the controller and the commands of Refit. */
import { expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const POLICY = 'pins';

test('a plan goes on around a pinned node, ends without it, and takes it up once the pin is gone', async () => {
  await installKinds();
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  const pin = [{ selector: { matchLabels: { gpu: 'true' } }, version: 'v1.20.1' }];
  await admin.create(upgradePolicies, buildUpgradePolicy(POLICY, { versions: { pin } }));
  onTestFinished(async () => await admin.delete(upgradePolicies, POLICY));
  await using puppets = await Puppets.create(admin, 'pins-w1', 'pins-w2');
  const label = { metadata: { labels: { gpu: 'true' } } };
  await admin.patch(nodes, 'pins-w1', label, { type: 'merge' });
  const path = await kubeconfigFor('controller');
  await using leader = new RefitProcess('controller', '--kubeconfig', path);
  const viewer = await kubeconfigFor('viewer');
  const operator = await kubeconfigFor('operator');

  await puppets.plan(2);
  await puppets.says('pins-w2', 'Completed');
  await puppets.until(async () => {
    const { stdout } = await runRefit('why', 'pins-w1', '--kubeconfig', viewer);
    const said = stdout.join(' ').replaceAll(/\s+/g, ' ');
    expect(said).toContain(
      'pins-w1 is pinned to v1.20.1 by spec.versions.pin[0] of UpgradePolicy pins',
    );
    expect(said).toContain('the pin of UpgradePolicy pins is removed or allows');
  });
  expect(await puppets.signal('pins-w1')).toBeUndefined();

  const finish = { spec: { holds: 'Finish' } };
  await admin.patch(upgradePolicies, POLICY, finish, { type: 'merge' });
  expect(await puppets.end()).toEqual({
    state: 'Completed',
    description: 'DoneWithSkipped: 1 of 2 targets done; skipped: pins-w1',
  });
  await admin.patch(upgradePolicies, POLICY, { spec: { versions: null } }, { type: 'merge' });
  expect((await runRefit('retry', '--skipped', '--kubeconfig', operator)).code).toBe(0);
  await puppets.says('pins-w1', 'Completed');
  await puppets.until(async () =>
    expect(await puppets.end()).toEqual({ state: 'Completed', description: undefined }),
  );
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('the API server refuses a pin without a version', async () => {
  await installKinds();
  const manifest = JSON.stringify({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'pins-bad' },
    spec: { versions: { pin: [{ selector: {} }] } },
  });
  const { ok, stderr } = await kubectlAs('admin', ['create', '-f', '-'], manifest);
  expect([ok, stderr]).toEqual([
    false,
    expect.stringContaining('spec.versions.pin[0].version: Required value'),
  ]);
});
