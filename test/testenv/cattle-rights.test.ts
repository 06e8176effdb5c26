/**
 * Tests that the stand-in for system-upgrade-controller works with the original's rights, which do not include any kind
 * of Refit.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { REFIT } from '../../sandbox/refit.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { buildCattlePlan } from '../support/builders/cattle-plans.ts';
import { writeAccountKubeconfig } from './account.ts';
import { apply, kubectlAs } from './control-plane.ts';

const NAMESPACE = 'system-upgrade';
const USER = 'original-rights';

const ALL = ['get', 'list', 'watch'];
const rule = (group: string, resources: string[], verbs: string[], names: string[] = []) => ({
  apiGroups: [group],
  resources,
  verbs,
  ...(names.length > 0 ? { resourceNames: names } : {}),
});
/** The rules of the original's ClusterRole, word for word. */
const IN_CLUSTER = [
  rule('batch', ['jobs'], ALL),
  rule(
    'apiextensions.k8s.io',
    ['customresourcedefinitions'],
    [...ALL, 'create', 'patch', 'update'],
  ),
  rule('', ['namespaces', 'nodes'], ALL),
  rule('', ['nodes'], ['update']),
  rule('', ['events'], ['get', 'create', 'patch', 'update']),
  rule('coordination.k8s.io', ['leases'], ['create']),
  rule('coordination.k8s.io', ['leases'], ['get', 'update'], ['system-upgrade-controller']),
  rule(
    'upgrade.cattle.io',
    ['plans', 'plans/status'],
    [...ALL, 'create', 'patch', 'update', 'delete'],
  ),
];
/** The rules of the original's Role, word for word. */
const IN_NAMESPACE = [
  rule('batch', ['jobs'], ['create', 'delete', 'deletecollection', 'patch', 'update', ...ALL]),
  rule('', ['secrets'], ALL),
];

async function grantOriginalRights(): Promise<void> {
  const metadata = { name: USER };
  const local = { name: USER, namespace: NAMESPACE };
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const bind = (kind: string) => ({
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: USER },
    subjects: [{ kind: 'ServiceAccount', ...local }],
  });
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: local },
    { apiVersion, kind: 'ClusterRole', metadata, rules: IN_CLUSTER },
    { apiVersion, kind: 'ClusterRoleBinding', metadata, ...bind('ClusterRole') },
    { apiVersion, kind: 'Role', metadata: local, rules: IN_NAMESPACE },
    { apiVersion, kind: 'RoleBinding', metadata: local, ...bind('Role') },
  ];
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
}

test('with the rights of the original, Refit upgrades a node and logs once that it cannot read UpgradePolicies', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-rights-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const path = join(directory, 'kubeconfig');
  await grantOriginalRights();
  await writeAccountKubeconfig(path, NAMESPACE, USER);
  const child = spawn(process.execPath, [REFIT, 'system-upgrade-controller'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      SYSTEM_UPGRADE_CONTROLLER_KUBE_CONFIG: path,
      SYSTEM_UPGRADE_CONTROLLER_NAME: 'system-upgrade-controller',
      SYSTEM_UPGRADE_CONTROLLER_INSTALL_CRD: 'true',
      SYSTEM_UPGRADE_CONTROLLER_NAMESPACE: NAMESPACE,
      SYSTEM_UPGRADE_CONTROLLER_LEADER_ELECT: 'true',
    },
  });
  const ended = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  await vi.waitFor(() => expect(log).toContain('"msg":"leading"'), {
    timeout: 150_000,
    interval: 50,
  });
  const name = 'original-rights-node';
  await apply(JSON.stringify({ ...simulatedNode(name), apiVersion: 'v1', kind: 'Node' }));
  onTestFinished(async () => void (await kubectlAs('admin', ['delete', 'node', name])));
  await apply(
    JSON.stringify(
      buildCattlePlan('rights', {
        nodeSelector: { matchLabels: { 'kubernetes.io/hostname': name } },
      }),
    ),
  );
  const waited = [
    'wait',
    '--for=condition=Complete',
    'plans.upgrade.cattle.io/rights',
    '-n',
    NAMESPACE,
    '--timeout=150s',
  ];
  expect((await kubectlAs('admin', waited)).stderr).toBe('');
  await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', 'rights', '-n', NAMESPACE]);
  child.kill('SIGTERM');
  const [code] = (await ended) as [number | null];
  expect(code).toBe(0);
  expect(log.match(/cannot read UpgradePolicies/g)).toHaveLength(1);
  expect(log).not.toContain('"level":"error"');
});
