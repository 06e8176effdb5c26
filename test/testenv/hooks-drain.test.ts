/** Tests hooks between the drain and the restart on a real API server, also with a leader that is killed meanwhile. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { leases } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { CENTRAL_CORDONING_LABEL } from '../../src/signal/names.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { type HookJobs, hookJobs, jobHook } from './hook-jobs.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const RIGHTS = 'deploy/rbac-hooks.yaml';

let admin: KubeClient;
let made: HookJobs;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  made = hookJobs(admin);
  await apply(await readFile(RIGHTS, 'utf8'));
});
afterAll(async () => {
  // Deletes the roles. If they stayed, a later test file could delete them together with the namespace, and would then
  // fail because roles are missing.
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
  admin.close();
});

async function usePolicy(name: string, more: UpgradePolicySpec): Promise<void> {
  const spec = { plans: [{ dialect: 'autopilot' as const }], ...more };
  await admin.create(upgradePolicies, buildUpgradePolicy(name, spec));
  onTestFinished(async () => await admin.delete(upgradePolicies, name));
  onTestFinished(made.remove);
}

async function lead(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

async function why(node: string): Promise<string> {
  const viewer = await kubeconfigFor('viewer');
  return (await runRefit('why', node, '--kubeconfig', viewer)).stdout.join('\n');
}

async function statusOf(puppets: Puppets, node: string): Promise<string | undefined> {
  return (await puppets.signal(node))?.status?.status;
}

test('the work goes on after the last pod is gone and both hooks have succeeded, once for every leader', async () => {
  await usePolicy('hooks-drained', {
    hooks: [jobHook('flush', 'BeforeRestart'), jobHook('detach', 'AfterDrain')],
  });
  await using puppets = await Puppets.create(admin, 'hooks-d1');
  const pod = await puppets.addLastingPod('hooks-d1');
  await using killed = await lead();
  await puppets.plan(1);
  await puppets.says('hooks-d1', 'Cordoning');

  // The pod is being deleted but still exists, so no hook runs.
  await puppets.until(async () => expect(await why('hooks-d1')).toContain(pod));
  expect(await made.of('detach')).toEqual([]);
  await puppets.release(pod);
  const detach = await made.last('detach');
  expect(await puppets.cordon('hooks-d1')).toBe('ours');
  await puppets.until(async () =>
    expect(await why('hooks-d1')).toContain(
      `the hook detach of UpgradePolicy hooks-drained must succeed for hooks-d1: Job refit-hooks/${detach.metadata.name} runs`,
    ),
  );

  // The next leader drains the node again. It finds the same Job, and does not evict the pod of the Job from the node.
  const { metadata } = await made.podOf(detach);
  // The Nodes of puppets have no capacity, so the scheduler does not bind the pod. The test binds it instead.
  const binding = { metadata: { name: metadata.name }, target: { kind: 'Node', name: 'hooks-d1' } };
  const path = `/api/v1/namespaces/refit-hooks/pods/${metadata.name}/binding`;
  const bound = await kubectlAs(
    'admin',
    ['create', '--raw', path, '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'Binding', ...binding }),
  );
  expect(bound).toMatchObject({ ok: true });
  await killed.stop('SIGKILL');
  await using leader = await lead();
  await made.end(detach, 'Succeeded');
  const flush = await made.last('flush');
  expect(await made.of('detach')).toHaveLength(1);
  expect((await made.podOf(detach)).metadata.uid).toBe(metadata.uid);
  expect(await statusOf(puppets, 'hooks-d1')).toBe('Cordoning');

  await made.end(flush, 'Succeeded');
  await puppets.until(async () =>
    expect(await statusOf(puppets, 'hooks-d1')).toBe('ApplyingUpdate'),
  );
  await puppets.says('hooks-d1', 'UnCordoning');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(await puppets.cordon('hooks-d1')).toBe('none');
  expect([await made.of('detach'), await made.of('flush')]).toMatchObject([[{}], [{}]]);
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('a failed hook ends the work before it has changed the node, which is schedulable again and can be retried', async () => {
  await usePolicy('hooks-fails', { hooks: [jobHook('detach', 'AfterDrain')] });
  await using puppets = await Puppets.create(admin, 'hooks-f1');
  await using leader = await lead();
  await puppets.plan(1);
  await puppets.says('hooks-f1', 'Cordoning');
  await made.end(await made.last('detach'), 'Failed');
  await puppets.until(async () => {
    expect(await statusOf(puppets, 'hooks-f1')).toBe('Failed');
    expect(await puppets.cordon('hooks-f1')).toBe('none');
  });
  expect(await puppets.reason('hooks-f1')).toMatch(
    /^hooks-f1: the hook detach of UpgradePolicy hooks-fails failed: Job .*BackoffLimitExceeded/,
  );
  expect(await why('hooks-f1')).toContain('the hook detach of UpgradePolicy hooks-fails failed');
  expect(await why('hooks-f1')).toContain('Failed. Repair what the hook reports');

  const operator = await kubeconfigFor('operator');
  expect((await runRefit('retry', 'hooks-f1', '--kubeconfig', operator)).code).toBe(0);
  await puppets.until(async () => expect(await statusOf(puppets, 'hooks-f1')).toBeUndefined());
  await puppets.says('hooks-f1', 'Cordoning');
  await made.end(await made.last('detach', 2), 'Succeeded');
  await puppets.until(async () =>
    expect(await statusOf(puppets, 'hooks-f1')).toBe('ApplyingUpdate'),
  );
  await puppets.says('hooks-f1', 'UnCordoning');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('without a drain, a hook before the restart runs all the same', async () => {
  await usePolicy('hooks-undrained', {
    drain: { enabled: false },
    hooks: [jobHook('flush', 'BeforeRestart')],
  });
  await using puppets = await Puppets.create(admin, 'hooks-u1');
  await using leader = await lead();
  await puppets.plan(1);
  await puppets.says('hooks-u1', 'Cordoning');
  const flush = await made.last('flush');
  expect(await puppets.cordon('hooks-u1')).toBe('none');
  expect(await statusOf(puppets, 'hooks-u1')).toBe('Cordoning');
  await made.end(flush, 'Succeeded');
  await puppets.until(async () =>
    expect(await statusOf(puppets, 'hooks-u1')).toBe('ApplyingUpdate'),
  );
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('a node that drains itself does not start until it lets the leader drain it', async () => {
  await usePolicy('hooks-by-itself', { hooks: [jobHook('detach', 'AfterDrain')] });
  await using puppets = await Puppets.create(admin, 'hooks-s1');
  const label = async (value: string | null): Promise<unknown> =>
    await admin.patch(
      leases,
      'hooks-s1',
      { metadata: { labels: { [CENTRAL_CORDONING_LABEL]: value } } },
      { type: 'merge', namespace: 'kube-node-lease' },
    );
  await label(null);
  await using leader = await lead();
  await puppets.plan(1);
  await puppets.until(async () =>
    expect(await why('hooks-s1')).toContain(
      'the hook detach of UpgradePolicy hooks-by-itself cannot run between the drain and the restart: hooks-s1 drains itself, and does not wait for the leader',
    ),
  );
  expect(await puppets.signal('hooks-s1')).toBeUndefined();
  await label('');
  await puppets.says('hooks-s1', 'Cordoning');
  await made.last('detach');
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('the API server refuses a hook after the drain if nothing is drained', async () => {
  const manifest = JSON.stringify({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'hooks-no-drain' },
    spec: { drain: { enabled: false }, hooks: [jobHook('detach', 'AfterDrain')] },
  });
  const { ok, stderr } = await kubectlAs('admin', ['create', '-f', '-'], manifest);
  expect(ok).toBe(false);
  expect(stderr).toContain(
    'a hook with `when: AfterDrain` needs a drain, but `drain.enabled` is false; use `BeforeRestart`',
  );
});
