/**
 * Tests `retry` of a policy on a real API server: Refit counts the attempts on the Plan, also across a restart of the
 * controller.
 */
import { expect, onTestFinished, test } from 'vitest';
import { plans } from '../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { ATTEMPTS_ANNOTATION } from '../../src/engine/model/controls.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

test('a failed node is tried again by itself, also after a restart of the controller, until its attempts are used up', async () => {
  await installKinds();
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  const retry = { attempts: 3, backoff: '4s' };
  await admin.create(upgradePolicies, buildUpgradePolicy('again', { retry }));
  onTestFinished(async () => await admin.delete(upgradePolicies, 'again'));
  await using puppets = await Puppets.create(admin, 'again-w1', 'again-w2');
  const path = await kubeconfigFor('controller');
  const viewer = await kubeconfigFor('viewer');
  const startLeader = () =>
    new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
  /** Returns the counted attempts of the only node that failed. */
  const attempts = async (): Promise<number | undefined> => {
    const { annotations = {} } = (await admin.get(plans, 'autopilot')).metadata;
    const text = annotations[ATTEMPTS_ANNOTATION] ?? '{"attempts":{}}';
    const { attempts: counts } = JSON.parse(text) as { attempts: Record<string, number> };
    return Object.values(counts)[0];
  };
  /** Waits until the node has a signal that it has not answered yet. */
  const signalled = async (): Promise<void> =>
    await puppets.until(async () => {
      const signal = await puppets.signal('again-w1');
      expect(signal).toBeDefined();
      expect(signal?.status).toBeUndefined();
    });

  const first = startLeader();
  await puppets.plan(1);
  await signalled();
  await puppets.says('again-w1', 'FailedDownload');
  await puppets.until(async () => {
    const { stdout } = await runRefit('why', 'again-w1', '--kubeconfig', viewer);
    expect(stdout.join('\n')).toContain('again-w1 failed: attempt 2 of 3 at ');
  });
  expect(await first.stop('SIGTERM')).toBe(0);

  await using second = startLeader();
  await puppets.says('again-w2', 'Completed');
  for (const number of [2, 3]) {
    await puppets.until(async () => expect(await attempts()).toBe(number));
    await signalled();
    if (number < 3) await puppets.says('again-w1', 'FailedDownload');
  }
  await puppets.says('again-w1', 'FailedDownload');
  expect(await puppets.end()).toMatchObject({ state: 'ApplyFailed' });
  const lines = 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}';
  await puppets.until(async () => {
    const { stdout } = await kubectlAs('viewer', ['get', 'events', '-A', '-o', lines]);
    expect(stdout).toContain('Retried Attempt 2 of 3 after a failure');
    expect(stdout).toContain('Retried Attempt 3 of 3 after a failure');
  });
  expect(await second.stop('SIGTERM')).toBe(0);
});

test('the API server refuses a retry without a useful number of attempts', async () => {
  await installKinds();
  const manifest = JSON.stringify({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'again-bad' },
    spec: { retry: { attempts: 0 } },
  });
  const { ok, stderr } = await kubectlAs('admin', ['create', '-f', '-'], manifest);
  expect([ok, stderr]).toEqual([
    false,
    expect.stringContaining('spec.retry.attempts in body should be greater than or equal to 1'),
  ]);
});
