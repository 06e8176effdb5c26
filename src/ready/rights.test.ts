/** Tests the check of the rights that Refit's own processes need. */
import { expect, test } from 'vitest';
import { placedPod, readyContext } from '../../test/support/ready/world.ts';
import { componentRights } from '../cmd/component-rights.ts';
import { MODULES } from '../dialects/modules.ts';
import type { AccessQuestion } from './access.ts';
import { answer, unknown } from './asking.ts';
import { accessesIn, type ComponentRights, rightsCheck } from './rights.ts';

const ROLE = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'r' } };
const RIGHTS: ComponentRights = {
  component: 'refit-controller',
  account: 'usual',
  namespace: 'refit-system',
  command: 'refit install controller',
  manifests: [
    {
      ...ROLE,
      kind: 'ClusterRole',
      rules: [
        { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
        { nonResourceURLs: ['/readyz'], verbs: ['get'] },
      ],
    },
    {
      ...ROLE,
      kind: 'Role',
      metadata: { name: 'r', namespace: 'refit-system' },
      rules: [
        {
          apiGroups: ['coordination.k8s.io'],
          resources: ['leases'],
          resourceNames: ['disruption'],
          verbs: ['get', 'update'],
        },
      ],
    },
    ...['ClusterRoleBinding', 'RoleBinding'].map((kind) => ({
      ...ROLE,
      kind,
      metadata: { name: 'r', ...(kind === 'RoleBinding' && { namespace: 'refit-system' }) },
      roleRef: { kind: kind.replace('Binding', ''), name: 'r' },
      subjects: [{ kind: 'ServiceAccount', name: 'usual', namespace: 'refit-system' }],
    })),
  ] as ComponentRights['manifests'],
};
const labels = {
  'app.kubernetes.io/name': 'refit',
  'app.kubernetes.io/component': 'refit-controller',
};
const POD = placedPod('c', 'n1', { serviceAccountName: 'own' }, { namespace: 'ops', labels });

async function ask(
  allows: (user: string, access: AccessQuestion) => boolean,
  objects: object[] = [POD],
) {
  const asked: string[] = [];
  let loads = 0;
  const load = async () => {
    loads += 1;
    return await Promise.resolve([RIGHTS]);
  };
  const found = await rightsCheck(load)({
    ...readyContext({ objects }),
    allows: async (user, access) => {
      asked.push(user);
      return await Promise.resolve(answer(allows(user, access)));
    },
  });
  return { found, users: new Set(asked), loads };
}

test('a component whose account has every right causes no finding', async () => {
  const { found, users } = await ask(() => true);
  expect(found).toEqual([]);
  expect([...users]).toEqual(['system:serviceaccount:ops:own']);
});

test('missing rights are one blocker that names them and the namespace of the component', async () => {
  const { found } = await ask((_user, { verb }) => verb === 'create');
  expect(found).toEqual([
    {
      state: 'blocker',
      object: 'ServiceAccount ops/own',
      message:
        'it lacks 3 rights that this release needs: get /readyz, get leases disruption in ops, update leases disruption in ops',
      cure: 'apply what `refit install controller` prints',
    },
  ]);
});

test('a pod that has nothing of a component but its labels is a warning', async () => {
  const { found } = await ask((_user, { path }) => path !== undefined);
  expect(found).toEqual([
    expect.objectContaining({
      state: 'warning',
      object: 'ServiceAccount ops/own',
      message:
        'a pod with the labels of refit-controller runs with it, and it has none of the rights of this component',
    }),
  ]);
});

test('a component without any right in its usual namespace is a blocker', async () => {
  const usual = placedPod(
    'c',
    'n1',
    { serviceAccountName: 'own' },
    { namespace: 'refit-system', labels },
  );
  const { found } = await ask((_user, { path }) => path !== undefined, [usual]);
  expect(found).toEqual([
    expect.objectContaining({ state: 'blocker', object: 'ServiceAccount refit-system/own' }),
  ]);
});

test('a pod that has ended is not judged', async () => {
  const ended = { ...POD, status: { phase: 'Succeeded' } };
  expect((await ask(() => false, [ended])).found).toEqual([]);
});

test('a component that does not run as a pod is not judged', async () => {
  const { found, users } = await ask(() => false, []);
  expect(found).toEqual([]);
  expect(users.size).toBe(0);
});

test('the manifests with the rights are read only if a component runs as a pod', async () => {
  const other = placedPod('web', 'n1', {});
  expect((await ask(() => true, [other])).loads).toBe(0);
  expect((await ask(() => true, [other, POD])).loads).toBe(1);
});

test('a question about rights that nobody answers is unknown', async () => {
  const found = await rightsCheck(async () => await Promise.resolve([RIGHTS]))({
    ...readyContext({ objects: [POD] }),
    allows: async () => await Promise.resolve(unknown('you may not ask')),
  });
  expect(found).toEqual([
    {
      state: 'unknown',
      object: 'ServiceAccount ops/own',
      message: 'whether it has its rights: you may not ask',
    },
  ]);
});

test('each component of the package has rights for the account of its Deployment', () => {
  const all = componentRights(MODULES);
  expect(all.map(({ component }) => component)).toEqual([
    'refit-controller',
    'system-upgrade-controller',
    'refit-capi-extension',
  ]);
  for (const each of all) expect(accessesIn(each, each.namespace).length).toBeGreaterThan(20);
});
