/** Recognizes Nodes of the control plane, which start first and one at a time, whatever the policy says. */
import { hasControlPlaneLabel, hasEtcdLabel } from '../../kube/control-plane-label.ts';
import type { TargetFacts } from './facts.ts';

/** Returns true if the object of the target has the label of control-plane Nodes, or the label of Nodes with etcd. */
export function isOfControlPlane({ labels }: Pick<TargetFacts, 'labels'>): boolean {
  return hasControlPlaneLabel(labels) || hasEtcdLabel(labels);
}
