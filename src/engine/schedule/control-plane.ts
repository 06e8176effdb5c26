/** Recognizes Nodes of the control plane, which start first and one at a time, whatever the policy says. */
import type { TargetFacts } from '../model/decision.ts';

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

/** Returns true if the object of the target has the label of control-plane Nodes. */
export function isOfControlPlane({ labels = {} }: Pick<TargetFacts, 'labels'>): boolean {
  return labels[CONTROL_PLANE] !== undefined;
}
