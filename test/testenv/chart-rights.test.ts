/** The chart grants rights for health checks and for volumes to the accounts of the controllers, and only if asked for. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../src/kube/resources.ts';
import { helm } from './helm.ts';

const NAMESPACE = 'refit-system';

/** Returns the objects for health checks, volumes and coordination that the chart makes. */
async function templated(...args: readonly string[]): Promise<KubeObject[]> {
  return await templatedIn(NAMESPACE, ...args);
}

async function templatedIn(namespace: string, ...args: readonly string[]): Promise<KubeObject[]> {
  const home = await mkdtemp(join(tmpdir(), 'refit-helm-'));
  onTestFinished(async () => await rm(home, { recursive: true, force: true }));
  const all = ['template', 'refit', 'deploy/chart', '--namespace', namespace, ...args];
  const { ok, stdout, stderr } = await helm(home, all);
  expect({ ok, stderr }).toEqual({ ok: true, stderr: '' });
  return parseAllDocuments(stdout, { version: '1.1' })
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null)
    .filter(({ metadata }) => /^refit-(health|volumes|coordinate)/.test(metadata.name));
}

test('rights for health checks', async () => {
  expect(await templated()).toEqual([]);
  const resources = [{ apiGroups: ['apps'], resources: ['statefulsets'] }];
  const values = JSON.stringify({ resources, jobs: ['tests'] });
  const ofJobs = { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get', 'create', 'delete'] };
  const subjects = [{ kind: 'ServiceAccount', name: 'refit-controller', namespace: NAMESPACE }];
  expect(await templated(`--set-json=health=${values}`)).toMatchObject([
    { kind: 'ClusterRole', rules: [{ ...resources[0], verbs: ['list'] }] },
    { kind: 'ClusterRoleBinding', subjects },
    { kind: 'Role', metadata: { namespace: 'tests' }, rules: [ofJobs] },
    { kind: 'RoleBinding', metadata: { namespace: 'tests' }, subjects },
  ]);
});

test('Secrets of health checks: the rights of deploy/rbac-health.yaml, for the named Secrets', async () => {
  const [role, binding] = await templated('--set=health.secrets={prom,web}');
  const file = await readFile('deploy/rbac-health.yaml', 'utf8');
  const [roleOfFile] = parseAllDocuments(file).map((document) => document.toJS() as KubeObject);
  const rule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
  expect(roleOfFile).toMatchObject({ kind: 'Role', rules: [rule] });
  expect(role).toMatchObject({
    kind: 'Role',
    rules: [{ ...rule, resourceNames: ['prom', 'web'] }],
  });
  expect(binding).toMatchObject({ kind: 'RoleBinding', metadata: { namespace: NAMESPACE } });
});

test('drains that wait for volumes: the rights of deploy/rbac-volumes.yaml for the accounts', async () => {
  const [role, binding] = await templated('--set=volumes.waitForDetach=true');
  const file = await readFile('deploy/rbac-volumes.yaml', 'utf8');
  const [roleOfFile] = parseAllDocuments(file).map(
    (document) => document.toJS() as { rules: object[] },
  );
  expect(role).toMatchObject({
    kind: 'ClusterRole',
    rules: roleOfFile?.rules,
  });
  expect(binding).toMatchObject({ kind: 'ClusterRoleBinding' });
  expect(JSON.stringify(binding)).toContain(`"name":"refit-controller","namespace":"${NAMESPACE}"`);
});

test('the disruption Lease: rights in its own namespace, wherever the chart is installed', async () => {
  const [role, binding] = await templatedIn('elsewhere', '--set=coordinate.disruptionLease=true');
  const file = await readFile('deploy/rbac-coordinate.yaml', 'utf8');
  const [roleOfFile] = parseAllDocuments(file).map(
    (document) => document.toJS() as { rules: object[] },
  );
  const metadata = { namespace: NAMESPACE };
  expect(role).toMatchObject({ kind: 'Role', metadata, rules: roleOfFile?.rules });
  expect(binding).toMatchObject({ kind: 'RoleBinding', metadata });
  expect(JSON.stringify(binding)).toContain('"name":"refit-controller","namespace":"elsewhere"');
});
