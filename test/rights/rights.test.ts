/**
 * Tests that the roles in `deploy/` grant few unused rights. A right is used if any test on the real control plane
 * needed it.
 */
import { globSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { drainPreviewer } from '../../src/drain/drain-preview.ts';
import { DEFAULT_DRAIN } from '../../src/drain/pods.ts';
import { createDrains } from '../../src/drain/running-drains.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { ROOT } from '../repo/tree.ts';
import {
  apply,
  kubeconfigFor,
  kubectlAs,
  type RecordedLoan,
  type User,
} from '../testenv/control-plane.ts';
import { Workloads } from '../testenv/drain-workloads.ts';
import { grantsOf, unusedOf } from './grants.ts';

/** The highest share of unused grants among all grants. */
const MOST_UNUSED = 0.1;

const LOST = 'asked when a recorded start must be undone before its signal was sent';
const SHARDS =
  'a plan of more than 5,000 targets that run: the tests record one, and the lab runs it in memory';
const NAMED = 'stands for the names of Secrets, which tests have in a role of their own';
const OLD = 'asked only of API servers that still serve removed kinds: Kubernetes before 1.32';

const NAMED_CONFIG =
  'asked only if a MachineDeployment or a MachinePool of this cluster names one: the tests read a Cluster as another user';

const HISTORY =
  'changes a NodeRollout for a new plan of the same name, or deletes it 30 days after its plan: the tests do both for k0s Plans';

/** Grants that no test needs, and the situation that needs each of them. */
const UNUSED: Readonly<Record<string, string>> = {
  'refit-cattle: get jobs.batch in system-upgrade': LOST,
  'refit-controller: get controlnodes.autopilot.k0sproject.io': LOST,
  'refit-operator: patch controlnodes.autopilot.k0sproject.io':
    'asked by `refit hold` of a controller that is no Node; the tests hold Nodes',
  'refit-controller: get statusshards.upgrade.refit.dev': SHARDS,
  'refit-controller: update statusshards.upgrade.refit.dev': SHARDS,
  'refit-controlnode-workloads:CONTROL_NODE: get leases.coordination.k8s.io NODE in kube-node-lease':
    'asked after the API server refused a mark on the lease',
  'refit-cattle: list secrets SECRET in system-upgrade': NAMED,
  'refit-cattle: watch secrets SECRET in system-upgrade': NAMED,
  'refit-kubeadm-approval: approve signers.certificates.k8s.io kubernetes.io/kubelet-serving':
    'checked by the API server at each approval, without a request of its own',
  'refit-kubeadm: patch events in kube-system': 'counts an Event that repeats within ten minutes',
  ...Object.fromEntries(
    [
      ['refit-capi-machines', ''],
      ['refit-cattle', ' in system-upgrade'],
      ['refit-kubeadm', ' in kube-system'],
    ].flatMap(([role, where]) =>
      ['patch', 'delete'].map((verb) => [
        `${role}: ${verb} noderollouts.upgrade.refit.dev${where}`,
        HISTORY,
      ]),
    ),
  ),
  ...Object.fromEntries(
    ['refit-controller', 'refit-viewer'].flatMap((role) =>
      ['flowschemas', 'prioritylevelconfigurations'].flatMap((kind) =>
        ['get', 'list'].map((verb) => [
          `${role}: ${verb} ${kind}.flowcontrol.apiserver.k8s.io`,
          OLD,
        ]),
      ),
    ),
  ),
  ...Object.fromEntries(
    ['flowschemas', 'prioritylevelconfigurations'].map((kind) => [
      `refit-ready: list ${kind}.flowcontrol.apiserver.k8s.io`,
      OLD,
    ]),
  ),
  'refit-ready: list kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io': NAMED_CONFIG,
  'refit-ready: get kubeadmconfigs.bootstrap.cluster.x-k8s.io': NAMED_CONFIG,
  'refit-coordinate: create leases.coordination.k8s.io in refit-system':
    'makes the Lease if nobody has made it: the test of a foreign holder makes it first',
  'refit-coordinate-kured: get daemonsets.apps kured in kube-system':
    'asked where an administrator removed the right to list DaemonSets, or where the lock is on this DaemonSet while another one runs Kured',
  'refit-viewer: list removedcrds.k0s.k0sproject.example.com': OLD,
};

/** Grants that only an opt-in proof uses, because the tests have no API server that serves the kind. */
const PROVED: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'create evictionrequests',
    'list evictionrequests',
    'delete evictionrequests',
    'list evictions',
  ].map((grant) => [
    `refit-eviction-requests: ${grant}.lifecycle.k8s.io`,
    'npm run proof:eviction-requests',
  ]),
);

const NODE = 'rights-w1';
const workloads = new Workloads('default', 'rights');
const daemons = workloads.of('DaemonSet', 'daemons');

const run = async (user: User, ...args: string[]): Promise<void> => {
  const { ok, stderr } = await kubectlAs(user, args);
  expect({ ok, stderr }).toMatchObject({ ok: true });
};

beforeAll(async () => {
  for (const file of globSync('deploy/crds/*.yaml', { cwd: ROOT }))
    await apply(await readFile(`${ROOT}${file}`, 'utf8'));
  const { apiVersion, kind, metadata } = simulatedNode(NODE);
  const node = {
    apiVersion,
    kind,
    metadata: { ...metadata, labels: { ...metadata.labels, stage: 'rights' } },
  };
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [node, daemons] }));
  await run('admin', 'rollout', 'status', 'daemonset', 'daemons', '--timeout=60s');
});

/** Starts a pod on a node that is not cordoned. */
async function startPod(name: string): Promise<void> {
  await run('admin', 'uncordon', NODE);
  await apply(JSON.stringify(workloads.pod(name)));
  await run('admin', 'wait', `pod/${name}`, '--for=condition=Ready', '--timeout=60s');
}

afterAll(async () => {
  await kubectlAs('admin', ['delete', 'daemonset', 'daemons']);
  await kubectlAs('admin', ['delete', 'pods', '--all', '--force']);
  await kubectlAs('admin', ['delete', 'node', NODE]);
});

test.each([
  ['evicted', []],
  ['deleted', ['--disable-eviction=true']],
])('the kubectl of a Job drains its node: pods are %s', async (app, flags) => {
  await startPod(app);
  const job = '--as=system:serviceaccount:system-upgrade:system-upgrade';
  const selector = `app in (daemons, ${app})`;
  await run(
    'admin',
    job,
    'drain',
    NODE,
    '--ignore-daemonsets',
    '--force',
    '--pod-selector',
    selector,
    ...flags,
  );
});

async function clientOf(user: User): Promise<KubeClient> {
  const client = createClient(await loadClusterConfig({ path: await kubeconfigFor(user) }));
  onTestFinished(() => client.close());
  return client;
}

test.each<[string, User]>([
  ['refit-kubeadm', 'kubeadm'],
  ['capi-extension', 'capi'],
  ['own-drain', { controlNode: 'rights-c1', node: NODE }],
])('%s drains a node with pods of a DaemonSet', async (name, user) => {
  await startPod(name);
  const client = await clientOf(user);
  const drains = createDrains({
    client,
    clock: systemClock,
    random: Math.random,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = drains.run(stop.signal);
  drains.begin(NODE, name, DEFAULT_DRAIN);
  await vi.waitFor(() => expect(drains.stateOf(NODE, name)?.kind).toBe('drained'), {
    timeout: 50_000,
    interval: 50,
  });
  stop.abort();
  await running;
});

test('the viewer previews the drain of a node with pods of a DaemonSet', async () => {
  const previewer = drainPreviewer(await clientOf('viewer'), new AbortController().signal);
  expect(await previewer.ahead(NODE, DEFAULT_DRAIN)).toEqual({
    evictable: 0,
    obstacles: [],
    refused: [],
  });
});

test.each([
  ['get', '--raw', '/readyz'],
  ['get', 'configmap', 'refit-kubeadm', '-n', 'kube-system', '--ignore-not-found'],
  ['describe', 'node', NODE],
  ['get', 'events', '-A'],
  ...[
    'plans.autopilot.k0sproject.io',
    'plans.upgrade.cattle.io',
    'jobs',
    'controlnodes',
    'upgradepolicies',
  ].map((kind) => ['get', kind, 'none', '--ignore-not-found']),
])('the viewer looks with kubectl: %s %s', async (...args) => {
  await run('viewer', ...args);
});

/**
 * Returns each audit log once, even if several test files borrowed the same control plane. The last line of a log may
 * be incomplete.
 */
async function readLogs(loans: readonly RecordedLoan[]): Promise<string[]> {
  const paths = [...new Set(loans.map(({ auditLog }) => auditLog))];
  const logs = await Promise.all(paths.map(async (path) => await readFile(path, 'utf8')));
  return logs.flatMap((log) => log.split('\n').slice(0, -1));
}

const roles = globSync('deploy/rbac*.yaml', { cwd: ROOT }).map((file) =>
  readFileSync(`${ROOT}${file}`, 'utf8'),
);

test('at most one granted right in ten is unused, and each unused right has a stated reason', async (context) => {
  const lines = (await readFile(inject('loans'), 'utf8')).trim().split('\n');
  const loans = lines.map((line) => JSON.parse(line) as RecordedLoan);
  const files = new Set(loans.map(({ file }) => relative(ROOT, file)));
  const missing = globSync('test/testenv/**/*.test.ts', { cwd: ROOT }).filter(
    (file) => !files.has(file),
  );
  context.skip(
    missing.length > 0,
    `did not run: ${missing[0]} and ${missing.length - 1} more; needs all of test/testenv`,
  );
  const grants = roles.flatMap(grantsOf);
  const unused = unusedOf(grants, await readLogs(loans));
  const titles = grants.map(({ title }) => title);
  const explained = { ...UNUSED, ...PROVED };
  expect(unused.filter((title) => explained[title] === undefined)).toEqual([]);
  expect(Object.keys(explained).filter((title) => !titles.includes(title))).toEqual([]);
  expect(Object.keys(UNUSED).length / grants.length).toBeLessThanOrEqual(MOST_UNUSED);
});

const ROLE = `
kind: ClusterRole
metadata: { name: one }
rules:
  - { apiGroups: [""], resources: [nodes], resourceNames: [NODE], verbs: [get, update] }
  - { nonResourceURLs: [/readyz], verbs: [get] }
---
kind: ClusterRoleBinding
metadata: { name: one }
roleRef: { kind: ClusterRole, name: one }
subjects: [{ kind: User, name: refit-one }]
`;
const asked = (more: object): string =>
  JSON.stringify({
    verb: 'get',
    requestURI: '/',
    userAgent: 'refit-agent/1 (w1)',
    user: { username: 'refit-one' },
    objectRef: { resource: 'nodes', name: 'w1' },
    annotations: { 'authorization.k8s.io/decision': 'allow' },
    ...more,
  });

test.each([
  ['nothing', []],
  ['another user', [asked({ user: { username: 'admin' } })]],
  ['another verb', [asked({ verb: 'list' })]],
  [
    'another resource',
    [asked({ objectRef: { resource: 'nodes', subresource: 'status', name: 'w1' } })],
  ],
  ['a refused request', [asked({ annotations: { 'authorization.k8s.io/decision': 'forbid' } })]],
  ['the kubectl of a test', [asked({ userAgent: 'kubectl/v1' })]],
])('a grant that %s used: found', (_what, log) => {
  expect(unusedOf(grantsOf(ROLE), log)).toEqual([
    'one: get /readyz',
    'one: get nodes NODE',
    'one: update nodes NODE',
  ]);
});

test('a grant that was used: not found', () => {
  const log = [asked({}), asked({ objectRef: undefined, requestURI: '/readyz?verbose' })];
  expect(unusedOf(grantsOf(ROLE), log)).toEqual(['one: update nodes NODE']);
});
