/**
 * Tests on a real control plane what Rancher's Plans report about Jobs that may not start, because they are forbidden
 * or because another Plan works on the node.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { jobs, nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { followUnfinished } from '../support/expectations/unfinished.ts';
import {
  conditionOf,
  installKinds,
  NAMESPACE,
  nodeOf,
  planOf,
  startController,
} from './cattle-rig.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const NODE = 'wordy-1';
const HERE = { nodeSelector: { matchLabels: { pool: 'wordy' } }, version: 'v1' };
const PATIENCE = { timeout: 60_000, interval: 200 };

let directory = '';
let health = '';
let admin: KubeClient;
let controller: Process;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-cattle-words-'));
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  await admin.create(nodes, nodeOf(NODE, { pool: 'wordy' }));
  await installKinds();
  health = `127.0.0.1:${await freePort()}`;
  controller = await startController(directory, {
    SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '0',
    SYSTEM_UPGRADE_CONTROLLER_HEALTH_ADDRESS: health,
    SYSTEM_UPGRADE_JOB_ACTIVE_DEADLINE_SECONDS_MAX: '300',
    SYSTEM_UPGRADE_JOB_IMAGE_PULL_POLICY: 'Never',
  });
});

afterAll(async () => {
  await controller.stop();
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', '--all', '-n', NAMESPACE]);
  await vi.waitFor(
    async () => expect((await admin.list(jobs, { namespace: NAMESPACE })).items).toEqual([]),
    PATIENCE,
  );
  await admin.delete(nodes, NODE);
  admin.close();
  await rm(directory, { recursive: true });
});

async function plan(name: string): Promise<CattlePlan> {
  return await admin.get(cattlePlans, name, { namespace: NAMESPACE });
}

test('a Job that a quota forbids shows in a condition, an Event and refit status, until the quota is deleted', async () => {
  const quota = {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'none', namespace: NAMESPACE },
  };
  await apply(JSON.stringify({ ...quota, spec: { hard: { 'count/jobs.batch': '0' } } }));
  await apply(JSON.stringify(planOf('forbidden', HERE)));
  const words = new RegExp(
    `^${NODE}: the API server refuses to change its object: .* is forbidden: exceeded quota: none`,
  );
  await vi.waitFor(async () => {
    const { reason, message } = conditionOf(await plan('forbidden'), 'RefitStalled');
    expect({ reason, message }).toEqual({
      reason: 'Stalled',
      message: expect.stringMatching(words),
    });
  }, PATIENCE);
  const about = [
    'get',
    'events',
    '-A',
    '--field-selector',
    `involvedObject.name=${NODE},reason=TargetRefused`,
  ];
  expect(
    (await kubectlAs('admin', [...about, '-o', 'jsonpath={.items[*].message}'])).stdout,
  ).toMatch(words);
  const flags = [
    '--plan',
    `cattle/${NAMESPACE}/forbidden`,
    '--kubeconfig',
    await kubeconfigFor('viewer'),
  ];
  expect((await runRefit('status', ...flags)).stdout.join('\n')).toContain('exceeded quota');
  await kubectlAs('admin', ['delete', 'resourcequota', 'none', '-n', NAMESPACE]);
  await vi.waitFor(async () => {
    const found = await plan('forbidden');
    expect([conditionOf(found, 'Complete').status, conditionOf(found, 'RefitStalled')]).toEqual([
      'True',
      {},
    ]);
  }, PATIENCE);
});

/** Refuses the label that marks a node as done with the Plan. */
const POLICY = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'no-such-label' },
  spec: {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['nodes'] },
      ],
    },
    validations: [
      {
        expression: "!('plan.upgrade.cattle.io/refused' in object.metadata.labels)",
        message: 'not on this node',
      },
    ],
  },
};
const BINDING = {
  ...POLICY,
  kind: 'ValidatingAdmissionPolicyBinding',
  spec: { policyName: POLICY.metadata.name, validationActions: ['Deny'] },
};

test('a node whose last write is refused is not done, and status says why', async () => {
  const kinds = 'validatingadmissionpolicybinding,validatingadmissionpolicy';
  const allow = async () =>
    await kubectlAs('admin', ['delete', kinds, POLICY.metadata.name, '--ignore-not-found']);
  onTestFinished(async () => void (await allow()));
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [POLICY, BINDING] }));
  const label = ['label', 'node', NODE, 'plan.upgrade.cattle.io/refused=x', '--dry-run=server'];
  await vi.waitFor(
    async () => expect((await kubectlAs('admin', label)).stderr).toContain('not on this node'),
    PATIENCE,
  );
  await apply(JSON.stringify(planOf('refused', HERE)));
  const flags = [
    '--plan',
    `cattle/${NAMESPACE}/refused`,
    '--kubeconfig',
    await kubeconfigFor('viewer'),
  ];
  await vi.waitFor(async () => {
    const status = (await runRefit('status', ...flags)).stdout.join('\n');
    expect(status).toMatch(
      new RegExp(`${NODE} +upgraded, verifying .*${NODE}: the API server refuses to change its`),
    );
    expect(status).toContain('running 0/1');
  }, PATIENCE);
  await allow();
  await vi.waitFor(
    async () => expect(conditionOf(await plan('refused'), 'Complete').status).toBe('True'),
    PATIENCE,
  );
});

test('two Plans take turns on a node, and the second Plan names the Plan that it waits for', async () => {
  const stop = new AbortController();
  const seen = await followUnfinished(admin, jobs, NAMESPACE, stop.signal);
  // The pod cannot be scheduled, so the first Job does not finish.
  await kubectlAs('admin', ['taint', 'node', NODE, 'example.com/busy=yes:NoSchedule']);
  await apply(JSON.stringify(planOf('first', HERE)));
  await vi.waitFor(
    async () => expect((await plan('first')).status?.applying).toEqual([NODE]),
    PATIENCE,
  );
  await apply(JSON.stringify(planOf('second', HERE)));
  const words = `Plan ${NAMESPACE}/first is at work on ${NODE}`;
  const flags = [
    '--plan',
    `cattle/${NAMESPACE}/second`,
    '--kubeconfig',
    await kubeconfigFor('viewer'),
  ];
  await vi.waitFor(async () => {
    expect(conditionOf(await plan('second'), 'RefitWaits').status).toBe('True');
    const about = [
      '--field-selector',
      'involvedObject.name=second,reason=ForeignWork',
      '-o',
      'jsonpath={..message}',
    ];
    expect(
      (await kubectlAs('admin', ['get', 'events', '-n', NAMESPACE, ...about])).stdout,
    ).toContain(words);
    expect((await runRefit('status', ...flags)).stdout.join('\n')).toContain(words);
  }, PATIENCE);
  await kubectlAs('admin', ['taint', 'node', NODE, 'example.com/busy-']);
  await vi.waitFor(async () => {
    for (const name of ['first', 'second'])
      expect(conditionOf(await plan(name), 'Complete').status).toBe('True');
  }, PATIENCE);
  stop.abort();
  expect(seen.most()).toBe(1);
});

test('the settings of the controller limit the deadline of a Job and set its image pull policy', async () => {
  const { items } = await admin.list(jobs, {
    namespace: NAMESPACE,
    labelSelector: 'upgrade.cattle.io/plan=first',
  });
  const container = { imagePullPolicy: 'Never' };
  const spec = { activeDeadlineSeconds: 300, template: { spec: { containers: [container] } } };
  expect(items).toMatchObject([{ spec }]);
});

test('the controller of cattle Plans serves health endpoints and the metrics of Refit', async () => {
  const ask = async (path: string): Promise<Response> => await fetch(`http://${health}${path}`);
  for (const path of ['/healthz', '/readyz']) expect((await ask(path)).status).toBe(200);
  const metrics = async (): Promise<string> => await (await ask('/metrics')).text();
  await apply(JSON.stringify(planOf('measured', HERE)));
  await vi.waitFor(
    async () => expect(conditionOf(await plan('measured'), 'Complete').status).toBe('True'),
    PATIENCE,
  );
  await vi.waitFor(async () => {
    const text = await metrics();
    for (const name of ['refit_plans', 'refit_targets']) {
      const line = new RegExp(
        `^${name}\\{(?=[^}]*dialect="cattle")(?=[^}]*plan="[^"]*measured")[^}]*phase="done"[^}]*\\} 1$`,
        'm',
      );
      expect(text).toMatch(line);
    }
    expect(text).toMatch(/^leader_election_master_status\{[^}]*\} 1$/m);
    for (const name of [
      'refit_build_info',
      'workqueue_depth',
      'rest_client_requests_total',
      'refit_reconcile_duration_seconds_count',
    ])
      expect(text).toMatch(new RegExp(`^${name}\\{`, 'm'));
  }, PATIENCE);
});
