/**
 * Tests that the chart grants the accounts of the controllers rights for health checks, silences, hooks and volumes
 * only if a value requests them.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../src/kube/resources.ts';
import { helm } from './helm.ts';

const NAMESPACE = 'refit-system';

/** Returns the objects for health checks, silences, hooks, volumes and coordination that the chart makes. */
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
    .filter(({ metadata }) =>
      /^refit-(health|silences|hook|volumes|ready|eviction-requests|node-conditions|coordinate)/.test(
        metadata.name,
      ),
    );
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

test.each(['health', 'silences'])(
  'Secrets of %s: the rights of its file in deploy/, for the named Secrets',
  async (feature) => {
    const [role, binding] = await templated(`--set=${feature}.secrets={prom,web}`);
    const file = await readFile(`deploy/rbac-${feature}.yaml`, 'utf8');
    const [roleOfFile] = parseAllDocuments(file).map((document) => document.toJS() as KubeObject);
    const rule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
    expect(roleOfFile).toMatchObject({ kind: 'Role', rules: [rule] });
    expect(role).toMatchObject({
      kind: 'Role',
      rules: [{ ...rule, resourceNames: ['prom', 'web'] }],
    });
    expect(binding).toMatchObject({ kind: 'RoleBinding', metadata: { namespace: NAMESPACE } });
  },
);

test('hooks: Jobs in the named namespaces, and the named Secrets beside each controller', async () => {
  const values = JSON.stringify({ jobs: ['tests', 'more'], secrets: ['keys'] });
  const all = [
    '--set=cattle.enabled=true',
    '--set=capi.enabled=true',
    '--set=capi.payloadUrl=https://a.example/{version}',
  ];
  const made = await templated(`--set-json=hooks=${values}`, ...all);
  const [ofJobs, ofSecrets] = await rulesIn('deploy/rbac-hooks.yaml');
  const keys = { ...ofSecrets, resourceNames: ['keys'] };
  const accounts = [
    `${NAMESPACE}/refit-controller`,
    'system-upgrade/system-upgrade',
    `${NAMESPACE}/refit-capi`,
  ];
  expect(made.map(rightOf)).toEqual(
    expect.arrayContaining([
      ['refit-hooks in tests', [ofJobs]],
      ['refit-hooks in tests', accounts],
      ['refit-hooks in more', [ofJobs]],
      ['refit-hooks in more', accounts],
      [`refit-hook-secrets in ${NAMESPACE}`, [keys]],
      [`refit-hook-secrets in ${NAMESPACE}`, [accounts[0], accounts[2]]],
      ['refit-hook-secrets in system-upgrade', [keys]],
      ['refit-hook-secrets in system-upgrade', [accounts[1]]],
    ]),
  );
  expect(made).toHaveLength(8);
});

test('the controllers get the namespaces of hooks and of health checks as their list, and none if there are none', async () => {
  const home = await mkdtemp(join(tmpdir(), 'refit-helm-'));
  onTestFinished(async () => await rm(home, { recursive: true, force: true }));
  const listedWith = async (...values: readonly string[]): Promise<readonly string[]> => {
    const enabled = '--set=cattle.enabled=true,capi.enabled=true';
    const url = '--set=capi.payloadUrl=https://a.example/{version}';
    const { stdout } = await helm(home, [
      'template',
      'refit',
      'deploy/chart',
      '--namespace',
      NAMESPACE,
      enabled,
      url,
      ...values,
    ]);
    return (
      stdout
        .match(/--job-namespaces=.*|JOB_NAMESPACES\n\s+value: .*/g)
        ?.map((text) => text.replace(/.*(=|value: )/s, '').replaceAll('"', '')) ?? []
    );
  };
  expect(await listedWith()).toEqual([]);
  const list = 'more,tests';
  expect(await listedWith('--set=hooks.jobs={more},health.jobs={tests,more}')).toEqual([
    list,
    list,
    list,
  ]);
});

/** Returns the name and the rules of a role, or the name of the role and the accounts of a binding. */
function rightOf(object: KubeObject): [string, unknown[]] {
  const { kind, metadata, rules, roleRef, subjects } = object as KubeObject & {
    readonly rules?: object[];
    readonly roleRef?: { readonly name: string };
    readonly subjects?: { readonly namespace: string; readonly name: string }[];
  };
  const title = `${roleRef?.name ?? metadata.name} in ${metadata.namespace}`;
  if (kind === 'Role') return [title, rules ?? []];
  return [title, (subjects ?? []).map(({ namespace, name }) => `${namespace}/${name}`)];
}

/** Returns the rules of the roles in a file, in their order. */
async function rulesIn(file: string): Promise<object[]> {
  return parseAllDocuments(await readFile(file, 'utf8')).flatMap(
    (document) => (document.toJS() as { rules?: object[] }).rules ?? [],
  );
}

test.each([
  ['drains that wait for volumes', 'volumes.waitForDetach', 'deploy/rbac-volumes.yaml'],
  ['checks before an upgrade', 'ready.enabled', 'deploy/rbac-ready.yaml'],
  ['drains by EvictionRequests', 'evictionRequests.enabled', 'deploy/rbac-eviction-requests.yaml'],
])('%s: with %s, the rights of %s for the accounts', async (_, value, path) => {
  const [role, binding] = await templated(`--set=${value}=true`);
  const file = await readFile(path, 'utf8');
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

test('conditions of Nodes: the right to change their status, and no other', async () => {
  const [role, binding, ...more] = await templatedIn(
    'elsewhere',
    '--set=nodeConditions.enabled=true',
  );
  const rule = { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] };
  expect(role).toMatchObject({ kind: 'ClusterRole', rules: [rule] });
  expect(binding).toMatchObject({ kind: 'ClusterRoleBinding' });
  expect(JSON.stringify(binding)).toContain('"name":"refit-controller","namespace":"elsewhere"');
  expect(more).toEqual([]);
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

test('the lock of Kured: the right to change its DaemonSet, and to find it in other namespaces', async () => {
  expect(await templated('--set=coordinate.disruptionLease=false')).toEqual([]);
  const made = await templatedIn('elsewhere', '--set=coordinate.kured=true');
  const ofKind = (wanted: string) => made.find(({ kind }) => kind === wanted);
  const role = ofKind('Role');
  const binding = ofKind('RoleBinding');
  const metadata = { name: 'refit-coordinate-kured', namespace: 'kube-system' };
  const rule = { resources: ['daemonsets'], resourceNames: ['kured'], verbs: ['get', 'patch'] };
  expect(role).toMatchObject({ kind: 'Role', metadata, rules: [rule] });
  expect(binding).toMatchObject({ kind: 'RoleBinding', metadata });
  expect(JSON.stringify(binding)).toContain('"name":"refit-controller","namespace":"elsewhere"');
  const list = { resources: ['daemonsets'], verbs: ['list'] };
  expect(ofKind('ClusterRole')).toMatchObject({ rules: [list] });
  expect(JSON.stringify(ofKind('ClusterRoleBinding'))).toContain('"namespace":"elsewhere"');
  expect(made).toHaveLength(4);
});
