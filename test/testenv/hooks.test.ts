/** Tests hooks of a policy on a real API server. The test itself acts as the kubelet of their pods. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { jobs } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { freeJobHook, type HookJobs, type Hooks, hookJobs, jobHook } from './hook-jobs.ts';
import { PATIENCE, Puppets } from './puppets.ts';
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

/** Returns the hooks in the JSON of `refit why` for the node. */
async function hooksShown(node: string): Promise<readonly unknown[]> {
  const viewer = await kubeconfigFor('viewer');
  const { stdout } = await runRefit('why', node, '-o', 'json', '--kubeconfig', viewer);
  const { plans } = JSON.parse(stdout.join('\n')) as {
    readonly plans: readonly { readonly hooks?: readonly unknown[] }[];
  };
  return plans.flatMap(({ hooks = [] }) => hooks);
}

async function events(): Promise<string> {
  const lines = 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}';
  return (await kubectlAs('viewer', ['get', 'events', '-A', '-o', lines])).stdout;
}

test('a node starts after its hook, keeps its slot until the second one is done, and a failed hook is retried', async () => {
  await usePolicy('hooks-both', [
    jobHook('backup', 'BeforeDrain'),
    freeJobHook('smoke', 'AfterVerified'),
  ]);
  onTestFinished(made.remove);
  await using puppets = await Puppets.create(admin, 'hooks-w1', 'hooks-w2');
  await using killed = await lead();
  await puppets.plan(1);

  const first = await made.last('backup');
  expect(await puppets.signal('hooks-w1')).toBeUndefined();
  expect(await puppets.cordon('hooks-w1')).toBe('none');
  expect(first.spec).toMatchObject({
    backoffLimit: 0,
    activeDeadlineSeconds: 300,
    template: {
      spec: {
        containers: [
          {
            env: expect.arrayContaining([
              { name: 'REFIT_NODE', value: 'hooks-w1' },
              { name: 'REFIT_PLAN', value: 'autopilot' },
            ]),
          },
        ],
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchFields: [{ key: 'metadata.name', values: ['hooks-w1'] }] },
              ],
            },
          },
        },
      },
    },
  });
  const name = `Job ${NAMESPACE}/${first.metadata.name}`;
  await puppets.until(async () =>
    expect(await why('hooks-w1')).toContain(
      `the hook backup of UpgradePolicy hooks-both must succeed for hooks-w1: ${name} runs`,
    ),
  );

  // The next leader continues with the same Job, and creates no other Job.
  await killed.stop('SIGKILL');
  await using leader = await lead();
  await made.end(first, 'Succeeded');
  await puppets.says('hooks-w1', 'Completed');
  expect(await made.of('backup')).toHaveLength(1);

  // The node occupies its slot until its second hook succeeds. So the hook `backup` does not run for the next node yet.
  const smoke = await made.last('smoke');
  expect(await made.of('backup')).toHaveLength(1);
  await made.end(smoke, 'Failed');
  await puppets.until(async () =>
    expect(await events()).toContain(
      `HookFailed hooks-w1: the hook smoke of UpgradePolicy hooks-both failed: Job ${NAMESPACE}/${smoke.metadata.name} failed: BackoffLimitExceeded`,
    ),
  );
  // The NodeRollout keeps the message of the hook, so that a viewer needs to read neither Events nor Jobs.
  const said = `Job ${NAMESPACE}/${smoke.metadata.name} failed: BackoffLimitExceeded`;
  await puppets.until(async () =>
    expect(await why('hooks-w1')).toContain(
      `the hook smoke of UpgradePolicy hooks-both failed: ${said}`,
    ),
  );
  await leader.stop('SIGKILL');
  await using next = await lead();
  await puppets.until(async () =>
    expect(await hooksShown('hooks-w1')).toMatchObject([
      {
        hook: 'smoke',
        target: 'hooks-w1',
        state: 'Failed',
        message: expect.stringContaining(said),
      },
    ]),
  );
  const operator = await kubeconfigFor('operator');
  expect((await runRefit('retry', 'hooks-w1', '--kubeconfig', operator)).code).toBe(0);
  const again = await made.last('smoke', 2);
  await made.end(again, 'Succeeded');

  // Deletes a Job before its end, as a person could do. Refit creates the Job again.
  const backup = await made.last('backup', 2);
  await admin.delete(jobs, backup.metadata.name, {
    namespace: NAMESPACE,
    propagationPolicy: 'Background',
  });
  const repeated = await vi.waitFor(async () => {
    const found = await made.last('backup', 2);
    expect(found.metadata.uid).not.toBe(backup.metadata.uid);
    return found;
  }, PATIENCE);
  await made.end(repeated, 'Succeeded');
  await puppets.says('hooks-w2', 'Completed');
  await made.end(await made.last('smoke', 3), 'Succeeded');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  expect(await made.of('backup')).toHaveLength(2);
  expect(await hooksShown('hooks-w1')).toEqual([]);
  expect(await next.stop('SIGTERM')).toBe(0);
});

test('a template that no API server accepts fails the node with what the API server says', async () => {
  const container = { name: 'hook', image: 'registry.example/hook:1', ports: [{}] };
  const template = { spec: { containers: [container] } };
  await usePolicy('hooks-odd', [
    freeJobHook('odd', 'BeforeDrain', { job: { namespace: NAMESPACE, template } }),
  ]);
  onTestFinished(made.remove);
  await using puppets = await Puppets.create(admin, 'hooks-o1');
  await using leader = await lead();
  await puppets.plan(1);
  await puppets.until(async () =>
    expect(await events()).toMatch(
      /HookFailed hooks-o1: the hook odd of UpgradePolicy hooks-odd failed: the API server refuses Job refit-hooks\/refit-odd-.*containerPort/,
    ),
  );
  expect(await puppets.signal('hooks-o1')).toBeUndefined();
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test.each<[string, object, string]>([
  ['an unknown moment', { when: 'Sometimes' }, 'Unsupported value: "Sometimes"'],
  [
    'no container',
    { job: { namespace: 'x', template: { spec: { containers: [] } } } },
    'at least 1',
  ],
  ['no template', { job: { namespace: 'x' } }, 'template: Required value'],
  ['neither a Job nor a webhook', { job: undefined }, 'must have either job or webhook'],
  ['no timeout', { timeout: undefined }, 'timeout: Required value'],
  ['a timeout above a week', { timeout: '200h' }, 'must be a time above zero and up to 168h'],
  ['a name with capitals', { name: 'Backup' }, 'should match'],
])('the API server refuses a hook with %s', async (_what, odd, expected) => {
  const manifest = JSON.stringify({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'hooks-bad' },
    spec: { hooks: [{ ...freeJobHook('backup', 'BeforeDrain'), ...odd }] },
  });
  const { ok, stderr } = await kubectlAs('admin', ['create', '-f', '-'], manifest);
  expect(ok).toBe(false);
  expect(stderr).toContain(expected);
});
