/** Tests hooks for a whole plan on a real API server. The test itself acts as the kubelet of their pods. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { freeJobHook, type HookJobs, type Hooks, hookJobs } from './hook-jobs.ts';
import { Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const NAMESPACE = 'refit-hooks';
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
  // A later test file may delete the namespace. If these roles were still in it, that file would fail because roles are
  // missing.
  await kubectlAs('admin', ['delete', '--ignore-not-found', '-f', RIGHTS]);
  admin.close();
});

async function usePolicy(name: string, hooks: Hooks): Promise<void> {
  const spec: UpgradePolicySpec = { plans: [{ dialect: 'autopilot' }], hooks };
  await admin.create(upgradePolicies, buildUpgradePolicy(name, spec));
  onTestFinished(async () => await admin.delete(upgradePolicies, name));
}

async function lead(): Promise<RefitProcess> {
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
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

test('nothing starts before the hook of the plan, which is retried, and the hook after it does not change its end', async () => {
  await usePolicy('hooks-plan', [
    freeJobHook('freeze', 'BeforePlan'),
    freeJobHook('report', 'AfterPlan'),
  ]);
  onTestFinished(made.remove);
  await using puppets = await Puppets.create(admin, 'plan-w1', 'plan-w2');
  await using first = await lead();
  await puppets.plan(2);

  const freeze = await made.last('freeze');
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

  // The next leader continues with the same Job, and creates no other Job.
  await first.stop('SIGKILL');
  await using second = await lead();
  await made.end(freeze, 'Failed');
  const failed = `the hook freeze of UpgradePolicy hooks-plan failed: ${name} failed: BackoffLimitExceeded`;
  await puppets.until(async () => expect(await events()).toContain(`PlanHookFailed ${failed}`));
  await puppets.until(async () => expect(await why('plan-w1')).toContain(failed));
  expect(await made.of('freeze')).toHaveLength(1);
  expect(await puppets.signal('plan-w1')).toBeUndefined();
  await puppets.until(async () => expect(await hooksShown()).toHaveLength(1));
  expect(await retryPlan()).toBe(0);
  await made.end(await made.last('freeze', 2), 'Succeeded');

  await puppets.says('plan-w1', 'Completed');
  await puppets.says('plan-w2', 'Completed');
  const report = await made.last('report');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });

  // The plan has ended. The next leader finds the Job of the hook `report`.
  await second.stop('SIGKILL');
  await using third = await lead();
  await made.end(report, 'Failed');
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
  expect(await made.of('report')).toHaveLength(1);

  // The hook `report` can be retried as well.
  expect(await retryPlan()).toBe(0);
  await made.end(await made.last('report', 2), 'Succeeded');
  await puppets.until(async () => expect(await hooksShown()).toEqual([]));
  expect(await made.of('freeze')).toHaveLength(2);
  expect(await third.stop('SIGTERM')).toBe(0);
});

test.each(['BeforePlan', 'AfterPlan'] as const)(
  'the API server refuses a hook %s that is pinned to a node',
  async (when) => {
    const { job } = freeJobHook('', when);
    const manifest = JSON.stringify({
      apiVersion: 'upgrade.refit.dev/v1alpha1',
      kind: 'UpgradePolicy',
      metadata: { name: 'hooks-bad' },
      spec: { hooks: [freeJobHook('freeze', when, { job: { ...job, pinToNode: true } })] },
    });
    const { ok, stderr } = await kubectlAs('admin', ['create', '-f', '-'], manifest);
    expect(ok).toBe(false);
    expect(stderr).toContain('must not have job.pinToNode with BeforePlan or AfterPlan');
  },
);
