/**
 * Tests the end of a plan that continued after failures within its failure budget: status, Event, log, metric, exit
 * code and advice.
 */
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';

import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

beforeAll(async () => {
  await installKinds();
});

test('it ends as ApplyFailed, names the failed node everywhere in the same words, and a retry completes it', async () => {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  // A definition is served a moment after it was created.
  await vi.waitFor(async () => await admin.list(upgradePolicies, { limit: 1 }), {
    timeout: 120_000,
    interval: 200,
  });
  const policy = await admin.create(
    upgradePolicies,
    buildUpgradePolicy('fail-budget', { failureBudget: 1 }),
  );
  onTestFinished(async () => await admin.delete(upgradePolicies, policy.metadata.name));
  await using puppets = await Puppets.create(admin, 'fail-w1', 'fail-w2');
  const port = await freePort();
  const flags = [
    '--kubeconfig',
    await kubeconfigFor('controller'),
    '--health-address',
    `127.0.0.1:${port}`,
  ];
  await using leader = new RefitProcess('controller', ...flags);
  const viewer = await kubeconfigFor('viewer');
  await puppets.plan(1);
  await puppets.says('fail-w1', 'Failed');
  await using watch = new RefitProcess('status', '-w', '--kubeconfig', viewer);
  await puppets.says('fail-w2', 'Completed');

  const words = '1 of 2 targets done; failed: fail-w1';
  expect(await puppets.end()).toEqual({
    state: 'ApplyFailed',
    description: `DoneWithFailures: ${words}`,
  });
  expect(await watch.ended).toBe(1);
  expect(watch.stderr.join('\n')).toContain(words);
  const why = (await runRefit('why', '--kubeconfig', viewer)).stdout.join('\n');
  expect(why).toContain(words);
  expect(why).toMatch(
    /\n {2}to do .*run: refit retry fail-w1\. If the release is bad: run refit upgrade VERSION, which replaces this Plan\.$/m,
  );
  await puppets.until(async () => {
    const lines = 'jsonpath={range .items[*]}{.type} {.reason} {.message}{"\\n"}{end}';
    expect((await kubectlAs('viewer', ['get', 'events', '-A', '-o', lines])).stdout).toContain(
      `Warning DoneWithFailures ${words}`,
    );
  });
  expect(leader.stderr.join('\n')).toContain(words);
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(metrics).toMatch(/refit_plans\{[^}]*phase="failed"[^}]*\} 1/);

  expect(
    (await runRefit('retry', 'fail-w1', '--kubeconfig', await kubeconfigFor('operator'))).code,
  ).toBe(0);
  await puppets.until(async () =>
    expect((await puppets.signal('fail-w1'))?.status).toBeUndefined(),
  );
  await puppets.says('fail-w1', 'Completed');
  expect(await puppets.end()).toEqual({ state: 'Completed', description: undefined });
  expect(await leader.stop('SIGTERM')).toBe(0);
});
