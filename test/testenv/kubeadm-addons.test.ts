/**
 * Tests addons, which come after all hosts: Refit plans them with dry runs, applies them, and waits for them. The test
 * uses a real API server.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import type { UpgradeReport } from '../../src/dialects/kubeadm/command/report.ts';
import { configMaps, type KubeObject, namespaced, namespaces } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { FROM, openScene, type Run, type Scene } from '../support/kubeadm/suite.ts';
import { apply, kubectlAs } from './control-plane.ts';

const NAMESPACE = 'kubeadm-addons';
const RIGHTS = 'kubeadm-addons-test';
let scene: Scene;
let manifest = '';
let folder = '';

beforeAll(async () => {
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'create', 'patch'] }];
  const metadata = { name: RIGHTS };
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  await apply(JSON.stringify({ apiVersion, kind: 'ClusterRole', metadata, rules }));
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: RIGHTS };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'refit-kubeadm' }];
  await apply(
    JSON.stringify({ apiVersion, kind: 'ClusterRoleBinding', metadata, roleRef, subjects }),
  );
  scene = await openScene(startJavascriptServer, { hosts: 1, played: true });
  manifest = await scene.cluster.manifest(FROM, (each) => {
    each['addons'] = [{ name: 'demo', path: 'demo' }];
  });
  folder = join(manifest, '../demo');
});

beforeEach(async () => {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder);
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', 'namespace', NAMESPACE, '--ignore-not-found']);
  await kubectlAs('admin', ['delete', 'crd', 'things.addons.example.com', '--ignore-not-found']);
  await kubectlAs('admin', [
    'delete',
    'configmap',
    'refit-addons',
    '-n',
    'kube-system',
    '--ignore-not-found',
  ]);
  await kubectlAs('admin', ['delete', 'clusterrole,clusterrolebinding', RIGHTS]);
  await scene[Symbol.asyncDispose]();
});

const run = (...args: readonly string[]): Run => scene.refit(...args, '-m', manifest);

async function write(name: string, ...objects: readonly object[]): Promise<void> {
  await writeFile(join(folder, name), objects.map((object) => stringify(object)).join('---\n'));
}

const config = (name: string, value: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: NAMESPACE },
  data: { value },
});

async function valueOf(name: string): Promise<string | undefined> {
  return (await ifFound(scene.cluster.client.get(configMaps, name, { namespace: NAMESPACE })))
    ?.data?.['value'];
}

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.addons.example.com' },
  spec: {
    group: 'addons.example.com',
    scope: 'Namespaced',
    names: { kind: 'Thing', plural: 'things' },
    versions: [
      { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
    ],
  },
};
const thing = {
  apiVersion: 'addons.example.com/v1',
  kind: 'Thing',
  metadata: { name: 'first', namespace: NAMESPACE },
};
const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
const labels = { app: 'web' };
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: NAMESPACE },
  spec: {
    replicas: 2,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: { containers: [{ name: 'web', image: 'registry.local:5000/web:v1' }] },
    },
  },
};
const deployments = namespaced<KubeObject & { status?: object }>('apps/v1', 'Deployment');

test('plan changes no addon, apply creates its objects in any file order, and a rerun has nothing to do', async () => {
  // The definition of the kind and the namespace come after the objects that need them.
  await write('a.yaml', thing, config('a', '1'), config('b', '1'));
  await write('z.yaml', definition, namespace, deployment);
  const plan = run('plan');
  expect([await plan.ended, plan.stderr]).toEqual([0, '']);
  expect(plan.stdout.match(/^addon demo: .*$/gm)).toEqual([
    'addon demo: created: CustomResourceDefinition things.addons.example.com',
    'addon demo: created: Namespace kubeadm-addons',
    'addon demo: created: Thing kubeadm-addons/first',
    'addon demo: created: ConfigMap kubeadm-addons/a',
    'addon demo: created: ConfigMap kubeadm-addons/b',
    'addon demo: created: Deployment kubeadm-addons/web',
  ]);
  expect(await ifFound(scene.cluster.client.get(namespaces, NAMESPACE))).toBeUndefined();
  const applied = run('apply', '--yes', '-o', 'json');
  expect(await applied.ended).toBe(0);
  const { outcome, checks } = JSON.parse(applied.stdout) as UpgradeReport;
  expect([outcome, checks.at(-1)]).toEqual([
    'done',
    { of: 'addon demo', component: 'objects', found: '6 applied' },
  ]);
  expect(await valueOf('a')).toBe('1');
  const { status } = await scene.cluster.client.get(deployments, 'web', { namespace: NAMESPACE });
  expect(status).toMatchObject({ updatedReplicas: 2, availableReplicas: 2 });
  const again = run('apply', '--yes');
  expect([await again.ended, again.stdout]).toEqual([
    0,
    expect.stringContaining('Nothing to do.\n'),
  ]);
}, 300_000);

test('Refit deletes no object of an addon, and reports an applied object that is in no file any more', async () => {
  const { namespace: _, ...inPlace } = config('a', '2').metadata;
  await write('a.yaml', config('a', '2'), { ...config('a', '1'), metadata: inPlace }, deployment);
  expect(await run('apply', '--yes').ended).toBe(0);
  const written = { ...config('a', '1'), metadata: { ...inPlace, namespace: 'default' } };
  await write('a.yaml', config('a', '3'), written, deployment);
  const applied = run('apply', '--yes');
  expect([await applied.ended, applied.stderr]).toEqual([0, '']);
  expect(applied.stdout.match(/^addon demo: .*$/gm)).toEqual([
    'addon demo: changed: ConfigMap kubeadm-addons/a',
  ]);
  await write('a.yaml', config('a', '3'), deployment);
  const plan = run('plan');
  const left =
    'an earlier run applied an object that no file has now, and Refit does not delete it; to see it: kubectl get configmaps a -n default';
  expect([await plan.ended, plan.stdout]).toEqual([
    0,
    expect.stringContaining(`warning addon: demo: ${left}\n`),
  ]);
  expect(plan.stdout).toContain('Nothing to do.');
  await write('a.yaml', config('a', '4'), deployment);
  const last = run('apply', '--yes');
  expect([await last.ended, last.stdout]).toEqual([
    0,
    expect.stringContaining(`\naddon demo: ${left}\n`),
  ]);
  expect([await valueOf('a'), await valueOf('b')]).toEqual(['4', '1']);
  await kubectlAs('admin', ['delete', 'configmaps', 'a', '-n', 'default']);
}, 300_000);

test('an addon with a field conflict is not applied until --force-conflicts is given', async () => {
  const { client } = scene.cluster;
  const theirs = { namespace: NAMESPACE, type: 'merge', fieldManager: 'somebody' } as const;
  await client.patch(configMaps, 'a', { data: { value: 'theirs' } }, theirs);
  await write('a.yaml', config('a', '3'), config('c', '3'));
  const applied = run('apply', '--yes');
  const conflict =
    'ConfigMap kubeadm-addons/a: Apply failed with 1 conflict: conflict with "somebody" using v1: .data.value';
  expect([await applied.ended, applied.stdout]).toEqual([
    1,
    expect.stringContaining(`warning addon: demo is not applied: ${conflict}`),
  ]);
  expect([await valueOf('a'), await valueOf('c')]).toEqual(['theirs', undefined]);
  const skipped = run('apply', '--yes', '--skip-addons');
  expect([await skipped.ended, skipped.stdout]).toEqual([
    0,
    expect.stringContaining('Nothing to do.\n'),
  ]);
  const forced = run('apply', '--yes', '--force-conflicts');
  expect([await forced.ended, forced.stderr]).toEqual([0, '']);
  expect([await valueOf('a'), await valueOf('c')]).toEqual(['3', '3']);
}, 300_000);

test('apply refuses an addon file that is not YAML', async () => {
  await writeFile(join(folder, 'a.yaml'), 'a: {{ .b }');
  const refused = run('apply', '--yes');
  expect([await refused.ended, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/^REFIT_FILE: addon demo: .*a\.yaml: is not YAML: /),
  ]);
});
