/** What the machines must tell their kubelets because all of them share one kernel. */
import { existsSync } from 'node:fs';

/** Is true if this machine has cgroups of version 1. */
export const onVersion1 = (): boolean => !existsSync('/sys/fs/cgroup/cgroup.controllers');

/** The configuration of the kubelets that is necessary because the machines share a kernel. */
export const KUBELET_CONFIGURATION = {
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  cgroupDriver: 'cgroupfs',
  oomScoreAdj: 0,
  maxOpenFiles: 20_000,
  evictionHard: {
    'memory.available': '50Mi',
    'nodefs.available': '1%',
    'imagefs.available': '1%',
    'nodefs.inodesFree': '1%',
  },
  // Images must not be removed as garbage, because nothing can pull them again.
  imageGCHighThresholdPercent: 100,
};
