/**
 * Tests waves, `settle`, and plans that end without their held nodes on a real API server, with the controller and the
 * commands of Refit.
 */
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

beforeAll(async () => {
  await installKinds();
});

test('the canary first, then a settle time, then the others; a held node is left out and taken up later', async () => {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  const policy = await admin.create(
    upgradePolicies,
    buildUpgradePolicy('waves', {
      waves: [{ selector: { matchLabels: { canary: 'true' } }, settle: '3s' }],
      settle: '1s',
      holds: 'Finish',
    }),
  );
  onTestFinished(async () => await admin.delete(upgradePolicies, policy.metadata.name));
  await using puppets = await Puppets.create(admin, 'wave-w1', 'wave-w2', 'wave-w3');
  const label = { metadata: { labels: { canary: 'true' } } };
  await admin.patch(nodes, 'wave-w2', label, { type: 'merge' });
  const operator = await kubeconfigFor('operator');
  expect((await runRefit('hold', 'wave-w3', '--kubeconfig', operator)).code).toBe(0);
  await using leader = new RefitProcess(
    'controller',
    '--kubeconfig',
    await kubeconfigFor('controller'),
  );
  const viewer = await kubeconfigFor('viewer');
  await puppets.plan(3);

  await vi.waitFor(async () => expect(await puppets.signal('wave-w2')).toBeDefined(), PATIENCE);
  expect(await puppets.signal('wave-w1')).toBeUndefined();
  const why = async (): Promise<string> =>
    (await runRefit('why', 'wave-w1', '--kubeconfig', viewer)).stdout.join('\n');
  expect(await why()).toContain('wave-w1 comes after wave-w2 in the waves of UpgradePolicy waves');
  await puppets.says('wave-w2', 'Completed');
  await vi.waitFor(async () => expect(await puppets.signal('wave-w1')).toBeDefined(), PATIENCE);
  await puppets.says('wave-w1', 'Completed');

  const message = '2 of 3 targets done; skipped: wave-w3';
  expect(await puppets.end()).toEqual({
    state: 'Completed',
    description: `DoneWithSkipped: ${message}`,
  });
  expect(await puppets.signal('wave-w3')).toBeUndefined();
  const lines = 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}';
  await puppets.until(async () =>
    expect((await kubectlAs('viewer', ['get', 'events', '-A', '-o', lines])).stdout).toContain(
      `DoneWithSkipped ${message}`,
    ),
  );

  expect((await runRefit('unhold', 'wave-w3', '--kubeconfig', operator)).code).toBe(0);
  expect((await runRefit('retry', '--skipped', '--kubeconfig', operator)).code).toBe(0);
  await puppets.says('wave-w3', 'Completed');
  await puppets.until(async () =>
    expect(await puppets.end()).toEqual({ state: 'Completed', description: undefined }),
  );
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('the API server refuses waves that cannot be meant', async () => {
  const refused = async (waves: object): Promise<string> => {
    const manifest = JSON.stringify({
      apiVersion: 'upgrade.refit.dev/v1alpha1',
      kind: 'UpgradePolicy',
      metadata: { name: 'waves-bad' },
      spec: { waves },
    });
    const { ok, stderr } = await kubectlAs('admin', ['create', '-f', '-'], manifest);
    expect(ok).toBe(false);
    return stderr;
  };
  expect(await refused([{ count: 1, percent: 5 }])).toContain(
    'must have at most one of selector, count and percent',
  );
  expect(await refused([{ settle: '1h' }, { count: 1 }])).toContain(
    'only the last wave may have neither selector, count nor percent',
  );
  expect(await refused([{ percent: 101 }])).toContain('less than or equal to 100');
});
