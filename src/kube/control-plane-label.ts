/** The label of control-plane Nodes. kubeadm and similar installers set it. */
export const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

/** Returns true if these are the labels of a control-plane Node. */
export function hasControlPlaneLabel(labels: Readonly<Record<string, string>> = {}): boolean {
  return labels[CONTROL_PLANE] !== undefined;
}
