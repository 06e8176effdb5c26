/** Tests on a real control plane the drains of a controller that drains itself: their deadline, and an invalid selector of pods. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans, upgradePolicies } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { jobs, nodes, pods } from '../../src/kube/resources.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import {
  conditionOf,
  installKinds,
  NAMESPACE,
  nodeOf,
  planOf,
  startController,
} from './cattle-rig.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';
import { runRefit } from './refit-process.ts';

const NODE = 'drained-1';
const HERE = { nodeSelector: { matchLabels: { pool: 'drained' } }, version: 'v1' };
const PLANS = 'plans.upgrade.cattle.io';
const PATIENCE = { timeout: 60_000, interval: 200 };
const SECOND_NS = 1e9;

let directory = '';
let admin: KubeClient;
let controller: Process;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-cattle-drain-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  admin = await clientOf('admin');
  await admin.create(nodes, nodeOf(NODE, { pool: 'drained' }));
  await installKinds();
  const account = {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'web', namespace: NAMESPACE },
  };
  const web = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      namespace: NAMESPACE,
      labels: { app: 'web' },
      finalizers: ['example.com/hold'],
    },
    spec: {
      nodeName: NODE,
      serviceAccountName: 'web',
      containers: [{ name: 'web', image: 'example.com/web' }],
    },
  };
  for (const object of [account, web]) await apply(JSON.stringify(object));
  controller = await startController(directory, {
    SYSTEM_UPGRADE_JOB_DRAIN_IN_JOB: 'false',
    // The role for drains is tested elsewhere.
    SYSTEM_UPGRADE_CONTROLLER_KUBE_CONFIG: await kubeconfigFor('admin'),
  });
});

afterAll(async () => {
  await controller.stop();
  // The garbage collector finds new kinds only every 30 seconds.
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io,jobs', '--all', '-n', NAMESPACE]);
  await kubectlAs('admin', [
    'delete',
    'pod',
    'web',
    '-n',
    NAMESPACE,
    '--force',
    '--grace-period=0',
    '--wait=false',
  ]);
  await kubectlAs('admin', [
    'patch',
    'pod',
    'web',
    '-n',
    NAMESPACE,
    '-p',
    '{"metadata":{"finalizers":null}}',
  ]);
  await kubectlAs('admin', ['delete', 'serviceaccount', 'web', '-n', NAMESPACE]);
  for (const kind of [jobs, pods])
    await vi.waitFor(
      async () => expect((await admin.list(kind, { namespace: NAMESPACE })).items).toEqual([]),
      PATIENCE,
    );
  await admin.delete(nodes, NODE);
  admin.close();
  await rm(directory, { recursive: true });
});

async function plan(name: string): Promise<CattlePlan> {
  return await admin.get(cattlePlans, name, { namespace: NAMESPACE });
}

test('a Plan whose selector of pods is invalid is told, and every command goes on', async () => {
  const matchExpressions = [{ key: 'app', operator: 'Wrong' }];
  await apply(
    JSON.stringify(planOf('wrong', { ...HERE, drain: { podSelector: { matchExpressions } } })),
  );
  const message =
    'spec.drain.podSelector is invalid, "Wrong" is not a valid label selector operator';
  await vi.waitFor(async () => {
    expect(conditionOf(await plan('wrong'), 'Validated')).toMatchObject({
      status: 'False',
      message,
    });
  }, PATIENCE);
  const { code, stdout } = await runRefit('status', '--kubeconfig', await kubeconfigFor('viewer'));
  expect(stdout.join('\n')).toContain(message);
  expect(code).toBe(0);
  await kubectlAs('admin', ['delete', PLANS, 'wrong', '-n', NAMESPACE]);
});

const BUDGET_POLICY = 'cattle-waits';

test.each(['Wait', 'Try'] as const)(
  'a budget that allows no eviction, with zeroDisruptionBudgets %s',
  async (choice) => {
    const drain = { zeroDisruptionBudgets: choice };
    await admin.create(upgradePolicies, buildUpgradePolicy(BUDGET_POLICY, { drain }));
    onTestFinished(async () => await admin.delete(upgradePolicies, BUDGET_POLICY));
    // The controller writes a condition when it has read the policy. Before that, it uses the defaults.
    await vi.waitFor(async () => {
      const { status } = await admin.get(upgradePolicies, BUDGET_POLICY);
      expect(status?.conditions).not.toBeUndefined();
    }, PATIENCE);
    const selector = { matchLabels: { app: 'web' } };
    const metadata = { name: 'web', namespace: NAMESPACE };
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: { selector, maxUnavailable: 0 },
    };
    await apply(JSON.stringify(budget));
    onTestFinished(
      async () => void (await kubectlAs('admin', ['delete', 'pdb', 'web', '-n', NAMESPACE])),
    );
    const blocked = { ...HERE, drain: { force: true, timeout: 4 * SECOND_NS } };
    await apply(JSON.stringify(planOf('blocked', blocked)));
    onTestFinished(
      async () => void (await kubectlAs('admin', ['delete', PLANS, 'blocked', '-n', NAMESPACE])),
    );
    if (choice === 'Try') {
      await vi.waitFor(async () => {
        const { reason, message } = conditionOf(await plan('blocked'), 'Complete');
        expect({ reason, message }).toEqual({
          reason: 'JobFailed',
          message: expect.stringContaining(`PodDisruptionBudget ${NAMESPACE}/web blocks`) as string,
        });
      }, PATIENCE);
      await vi.waitFor(
        async () => expect((await admin.get(nodes, NODE)).spec?.unschedulable).toBeUndefined(),
        PATIENCE,
      );
      return;
    }
    await vi.waitFor(async () => {
      expect(conditionOf(await plan('blocked'), 'RefitWaits')).toMatchObject({
        reason: 'GateBeforeDrain',
      });
    }, PATIENCE);
    const { stdout } = await runRefit('why', NODE, '--kubeconfig', await kubeconfigFor('viewer'));
    expect(stdout.join('\n')).toContain(`PodDisruptionBudget ${NAMESPACE}/web`);
    expect((await admin.list(jobs, { namespace: NAMESPACE })).items).toEqual([]);
  },
);

test('a drain that a pod holds up fails at its deadline, and the node is schedulable again', async () => {
  await apply(
    JSON.stringify(planOf('held', { ...HERE, drain: { force: true, timeout: 4 * SECOND_NS } })),
  );
  await vi.waitFor(async () => {
    const { reason, message } = conditionOf(await plan('held'), 'Complete');
    const words = `${NODE} was not drained within 4 s: 1 pod is left on node ${NODE} (${NAMESPACE}/web)`;
    expect({ reason, message }).toEqual({ reason: 'JobFailed', message: words });
  }, PATIENCE);
  await vi.waitFor(
    async () => expect((await admin.get(nodes, NODE)).spec?.unschedulable).toBeUndefined(),
    PATIENCE,
  );
});
