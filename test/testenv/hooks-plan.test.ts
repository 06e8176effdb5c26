/** Tests hooks for a whole plan on a real API server. The test itself acts as the kubelet of their pods. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type Job, jobs, pods } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

/** The label that Jobs of hooks have. */
const HOOK_LABEL = 'upgrade.refit.dev/hook';
const NAMESPACE = 'refit-hooks';
const RIGHTS = 'deploy/rbac-hooks.yaml';
type Hooks = NonNullable<UpgradePolicySpec['hooks']>;

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await apply(await readFile(RIGHTS, 'utf8'));
});
afterAll(async () => {
  // Another file may delete the namespace, and must not miss these roles then.
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
  admin.close();
});

function hook(name: string, when: Hooks[number]['when'], more: Partial<Hooks[number]> = {}) {
  const container = { name: 'hook', image: 'registry.example/hook:1', command: ['true'] };
  const template = { spec: { containers: [container], terminationGracePeriodSeconds: 0 } };
  return { name, when, job: { namespace: NAMESPACE, template }, timeout: '5m', ...more };
}

async function usePolicy(name: string, hooks: Hooks): Promise<void> {
  const spec: UpgradePolicySpec = { plans: [{ dialect: 'autopilot' }], hooks };
  await admin.create(upgradePolicies, buildUpgradePolicy(name, spec));
  onTestFinished(async () => await admin.delete(upgradePolicies, name));
}

async function lead(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

async function jobsOf(name: string): Promise<Job[]> {
  const labelSelector = `${HOOK_LABEL}=${name}`;
  const { items } = await admin.list(jobs, { namespace: NAMESPACE, labelSelector });
  return items.toSorted((a, b) =>
    (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''),
  );
}

/** Waits until the hook has this number of Jobs, and returns the last one. */
async function jobOf(name: string, count = 1): Promise<Job> {
  return await vi.waitFor(async () => {
    const found = await jobsOf(name);
    expect(found).toHaveLength(count);
    return found.at(-1) as Job;
  }, PATIENCE);
}

/** Ends the pod of the Job as a kubelet would. The Job controller of the cluster then ends the Job. */
async function end({ metadata }: Job, phase: 'Succeeded' | 'Failed'): Promise<void> {
  const pod = await vi.waitFor(async () => {
    const labelSelector = `batch.kubernetes.io/job-name=${metadata.name}`;
    const { items } = await admin.list(pods, { namespace: NAMESPACE, labelSelector });
    expect(items).toHaveLength(1);
    return items[0]?.metadata.name ?? '';
  }, PATIENCE);
  const options = { type: 'merge', subresource: 'status', namespace: NAMESPACE } as const;
  await admin.patch(pods, pod, { status: { phase } }, options);
}

async function why(node: string): Promise<string> {
  const viewer = await kubeconfigFor('viewer');
  return (await runRefit('why', node, '--kubeconfig', viewer)).stdout.join('\n');
}

/** Returns the hooks in the JSON of `refit status` for the only plan. */
async function hooksShown(): Promise<readonly unknown[]> {
  const viewer = await kubeconfigFor('viewer');
  const { stdout } = await runRefit('status', '-o', 'json', '--kubeconfig', viewer);
  const { plans } = JSON.parse(stdout.join('\n')) as {
    readonly plans: readonly { readonly hooks?: readonly unknown[] }[];
  };
  return plans.flatMap(({ hooks = [] }) => hooks);
}

async function events(): Promise<string> {
  const lines = 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}';
  return (await kubectlAs('viewer', ['get', 'events', '-A', '-o', lines])).stdout;
}

async function retryPlan(): Promise<number> {
  const operator = await kubeconfigFor('operator');
  return (await runRefit('retry', 'autopilot', '--kubeconfig', operator)).code ?? -1;
}

async function removeJobs(): Promise<void> {
  const { items } = await admin.list(jobs, { namespace: NAMESPACE });
  for (const { metadata } of items)
    await admin.delete(jobs, metadata.name, {
      namespace: NAMESPACE,
      propagationPolicy: 'Background',
    });
}

test('nothing starts before the hook of the plan, which is retried, and the hook after it does not change its end', async () => {
  await usePolicy('hooks-plan', [hook('freeze', 'BeforePlan'), hook('report', 'AfterPlan')]);
  onTestFinished(removeJobs);
  await using puppets = await Puppets.create(admin, 'plan-w1', 'plan-w2');
  await using first = await lead();
  await puppets.plan(2);

  const freeze = await jobOf('freeze');
  const name = `Job ${NAMESPACE}/${freeze.metadata.name}`;
  await puppets.until(async () =>
    expect(await why('plan-w1')).toContain(
      `the hook freeze of UpgradePolicy hooks-plan must succeed before the plan starts: ${name} runs`,
    ),
  );
  const variables = JSON.stringify(freeze.spec);
  expect(variables).toContain('{"name":"REFIT_PLAN","value":"autopilot"}');
  expect(variables).not.toContain('REFIT_NODE');
  expect(variables).not.toContain('metadata.name');
  expect(await retryPlan()).toBe(1);

  // The next leader goes on with the same Job, and creates no other.
  await first.stop('SIGKILL');
  await using second = await lead();
  await end(freeze, 'Failed');
  const failed = `the hook freeze of UpgradePolicy hooks-plan failed: ${name} failed: BackoffLimitExceeded`;
  await puppets.until(async () => expect(await events()).toContain(`PlanHookFailed ${failed}`));
  await puppets.until(async () => expect(await why('plan-w1')).toContain(failed));
  expect(await jobsOf('freeze')).toHaveLength(1);
  expect(await puppets.signal('plan-w1')).toBeUndefined();
  await puppets.until(async () => expect(await hooksShown()).toHaveLength(1));
  expect(await retryPlan()).toBe(0);
  await end(await jobOf('freeze', 2), 'Succeeded');

  await puppets.says('plan-w1', 'Completed');
  await puppets.says('plan-w2', 'Completed');
  const report = await jobOf('report');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });

  // The next leader finds the Job after the end of the plan.
  await second.stop('SIGKILL');
  await using third = await lead();
  await end(report, 'Failed');
  const said = `Job ${NAMESPACE}/${report.metadata.name} failed: BackoffLimitExceeded`;
  await puppets.until(async () =>
    expect(await events()).toContain(
      `PlanHookFailed the hook report of UpgradePolicy hooks-plan failed: ${said}`,
    ),
  );
  await puppets.until(async () =>
    expect(await hooksShown()).toMatchObject([
      { hook: 'report', state: 'Failed', message: expect.stringContaining(said) },
    ]),
  );
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(await jobsOf('report')).toHaveLength(1);

  // It can be tried again, too.
  expect(await retryPlan()).toBe(0);
  await end(await jobOf('report', 2), 'Succeeded');
  await puppets.until(async () => expect(await hooksShown()).toEqual([]));
  expect(await jobsOf('freeze')).toHaveLength(2);
  expect(await third.stop('SIGTERM')).toBe(0);
});

test.each(['BeforePlan', 'AfterPlan'] as const)(
  'the API server refuses a hook %s that is pinned to a node',
  async (when) => {
    const { job } = hook('', when);
    const manifest = JSON.stringify({
      apiVersion: 'upgrade.refit.dev/v1alpha1',
      kind: 'UpgradePolicy',
      metadata: { name: 'hooks-bad' },
      spec: { hooks: [hook('freeze', when, { job: { ...job, pinToNode: true } })] },
    });
    const { ok, stderr } = await kubectlAs('admin', ['create', '-f', '-'], manifest);
    expect(ok).toBe(false);
    expect(stderr).toContain('must not have job.pinToNode with BeforePlan or AfterPlan');
  },
);
