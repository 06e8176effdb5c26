/** The rights for autopilot that k0s gives its nodes in addition to the rights of every kubelet. */
import type { KubeClient } from '../../../src/kube/client.ts';
import type { KubeObject, Resource } from '../../../src/kube/resources.ts';
import { isAlreadyExists } from '../../../src/kube/status-error.ts';

const NAME = 'system:nodes:autopilot';
const NAMESPACE = 'k0s-autopilot';
const GROUP = 'rbac.authorization.k8s.io';

const resourceOf = (kind: string, plural: string, namespaced: boolean): Resource => {
  return { group: GROUP, version: 'v1', kind, plural, namespaced };
};
const clusterRoles = resourceOf('ClusterRole', 'clusterroles', false);
const clusterRoleBindings = resourceOf('ClusterRoleBinding', 'clusterrolebindings', false);
const roles = resourceOf('Role', 'roles', true);
const roleBindings = resourceOf('RoleBinding', 'rolebindings', true);

const rule = (
  apiGroup: string,
  resources: string,
  verbs: string,
  resourceNames?: string[],
): object => {
  return {
    apiGroups: [apiGroup],
    resources: [resources],
    verbs: verbs.split(' '),
    ...(resourceNames && { resourceNames }),
  };
};

const CLUSTER_RULES = [
  rule('', 'nodes', 'get list watch update patch'),
  rule('', 'pods', 'get list watch delete'),
  rule('', 'pods/eviction', 'create'),
  rule('', 'namespaces', 'get', ['kube-system']),
  rule('apps', 'daemonsets', 'get list'),
  rule('autopilot.k0sproject.io', 'plans', 'get list watch'),
];
const LEASE_RULES = [rule('coordination.k8s.io', 'leases', 'get', ['k0s-autopilot-controller'])];

const grants: readonly (readonly [Resource, Record<string, unknown>])[] = [
  [clusterRoles, { rules: CLUSTER_RULES }],
  [clusterRoleBindings, bindingTo('ClusterRole')],
  [roles, { rules: LEASE_RULES }],
  [roleBindings, bindingTo('Role')],
];

function bindingTo(kind: string): Record<string, unknown> {
  const subjects = [{ apiGroup: GROUP, kind: 'Group', name: 'system:nodes' }];
  return { roleRef: { apiGroup: GROUP, kind, name: NAME }, subjects };
}

/** Applies the rights as k0s does. The disposal of the result removes them. */
export async function grantNodeRights(admin: KubeClient): Promise<AsyncDisposable> {
  for (const [resource, content] of grants) {
    const metadata = { name: NAME, ...(resource.namespaced ? { namespace: NAMESPACE } : {}) };
    const object: KubeObject = {
      apiVersion: `${GROUP}/v1`,
      kind: resource.kind,
      metadata,
      ...content,
    };
    await admin.create(resource, object).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const [resource] of grants) await admin.delete(resource, NAME, { namespace: NAMESPACE });
    },
  };
}
