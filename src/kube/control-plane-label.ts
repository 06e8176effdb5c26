/** The label of control-plane Nodes. kubeadm and similar installers set it. */
export const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

/** Returns true if these are the labels of a control-plane Node. */
export function hasControlPlaneLabel(labels: Readonly<Record<string, string>> = {}): boolean {
  return labels[CONTROL_PLANE] !== undefined;
}

/** Returns true if these are the labels of a Node that runs a member of etcd. K3s and RKE2 set this label. */
export function hasEtcdLabel(labels: Readonly<Record<string, string>> = {}): boolean {
  return labels['node-role.kubernetes.io/etcd'] !== undefined;
}
