/** Tests health checks of objects on a real API server. */
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { configMaps } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { PATIENCE, Puppets } from './puppets.ts';
import { RefitProcess, runRefit } from './refit-process.ts';

const NAMESPACE = 'default';
const OPTIONS = { namespace: NAMESPACE };
const SOON = { timeout: 40_000, interval: 500 };
const RIGHTS = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: refit-health-test }
rules:
  - { apiGroups: [''], resources: [configmaps], verbs: [list] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: refit-health-test }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: refit-health-test }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: User, name: refit-controller }]
`;

beforeAll(async () => {
  await installKinds();
});

type Health = NonNullable<UpgradePolicySpec['health']>;

async function scene(health: Health): Promise<KubeClient> {
  const admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  onTestFinished(() => admin.close());
  const policy = buildUpgradePolicy('healthy', { health });
  await admin.create(upgradePolicies, policy);
  onTestFinished(async () => await admin.delete(upgradePolicies, 'healthy'));
  return admin;
}

async function grant(): Promise<void> {
  await kubectlAs('admin', ['apply', '-f', '-'], RIGHTS);
  onTestFinished(async () => void (await kubectlAs('admin', ['delete', '-f', '-'], RIGHTS)));
}

/**
 * Waits until the reason is in the NodeRollout or in Events, to which the leader writes why nodes wait. Commands run no
 * health checks themselves.
 */
async function waitsBecause(text: string): Promise<void> {
  await vi.waitFor(async () => {
    const { stdout } = await kubectlAs('admin', ['get', 'noderollouts,events', '-A', '-o', 'json']);
    expect(stdout).toContain(text);
  }, SOON);
}

async function why(node: string): Promise<string> {
  const viewer = await kubeconfigFor('viewer');
  return (await runRefit('why', node, '--kubeconfig', viewer)).stdout.join('\n');
}

/** Starts a leader, and a plan for one node. */
async function start(admin: KubeClient, node: string, stack: AsyncDisposableStack) {
  const puppets = stack.use(await Puppets.create(admin, node));
  const config = await kubeconfigFor('controller');
  const leader = stack.use(new RefitProcess('controller', '--kubeconfig', config));
  await puppets.plan(1);
  return { puppets, leader };
}

test('a plan waits for a right and for an object', async () => {
  const expression = 'object.data.state == "good"';
  const selector = { matchLabels: { health: 'test' } };
  const object = { name: 'objects', apiVersion: 'v1', kind: 'ConfigMap', selector, expression };
  const admin = await scene({ resources: [{ ...object, namespace: NAMESPACE, for: '2s' }] });
  const metadata = { name: 'health-test', namespace: NAMESPACE, labels: selector.matchLabels };
  await admin.create(configMaps, { metadata, data: { state: 'bad' } }, OPTIONS);
  onTestFinished(async () => await admin.delete(configMaps, 'health-test', OPTIONS));
  await using stack = new AsyncDisposableStack();
  const { puppets, leader } = await start(admin, 'health-w1', stack);
  await waitsBecause('lacks the right to list configmaps in the namespace default');
  await grant();
  await waitsBecause('1 of 1 ConfigMap objects fail: default/health-test');
  expect(await puppets.signal('health-w1')).toBeUndefined();
  const good = { data: { state: 'good' } };
  await admin.patch(configMaps, 'health-test', good, { ...OPTIONS, type: 'merge' });
  await vi.waitFor(async () => expect(await puppets.signal('health-w1')).toBeDefined(), PATIENCE);
  expect(await leader.stop('SIGTERM')).toBe(0);
});

test('an expression that cannot be meant is refused, shown and starts nothing', async () => {
  const expression = 'status.readyReplicas == 3';
  const check = { name: 'objects', apiVersion: 'apps/v1', kind: 'StatefulSet', expression };
  const admin = await scene({ resources: [check] });
  const found = 'Unknown variable: status, at character 1';
  await using puppets = await Puppets.create(admin, 'health-w2');
  await using leader = new RefitProcess(
    'controller',
    '--kubeconfig',
    await kubeconfigFor('controller'),
  );
  await puppets.plan(1);
  await vi.waitFor(async () => expect(await why('health-w2')).toContain(found), PATIENCE);
  await vi.waitFor(async () => {
    const { status } = await admin.get(upgradePolicies, 'healthy');
    expect(JSON.stringify(status)).toContain(found);
  }, PATIENCE);
  expect(await puppets.signal('health-w2')).toBeUndefined();
  expect(await leader.stop('SIGTERM')).toBe(0);
});
