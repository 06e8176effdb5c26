/**
 * Allows the cattle controller to read one Secret. deploy/rbac-cattle.yaml does not grant this; the administrator must
 * grant it.
 */

export function secretReader(namespace: string, name: string): object[] {
  const metadata = { name: `reads-${name}`, namespace };
  const rules = [
    { apiGroups: [''], resources: ['secrets'], resourceNames: [name], verbs: ['list', 'watch'] },
  ];
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name };
  const subjects = [{ apiGroup: roleRef.apiGroup, kind: 'User', name: 'refit-cattle' }];
  return [
    { apiVersion, kind: 'Role', metadata, rules },
    { apiVersion, kind: 'RoleBinding', metadata, roleRef, subjects },
  ];
}
