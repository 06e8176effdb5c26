/** The names that reports use for the steps of an upgrade over SSH. */

/** The names of the parts of a host that an upgrade replaces. */
export const PARTS = {
  kubeadm: 'Kubeadm',
  kubelet: 'Kubelet',
  certificates: 'Certificates',
} as const;

/** The names that reports use for the steps: the parts, and the steps before and after the parts. */
export const STEPS = {
  ...PARTS,
  stage: 'Stage',
  drain: 'Drain',
  containerd: 'Containerd',
  verify: 'Verify',
} as const;
