/** Says what k0s requires of its hosts, and which of its versions may run together. */
import { parseVersion } from '../util/version.ts';
import { refusesCgroupV1 } from './kubeadm-rules.ts';

/**
 * The most minor versions by which a worker of k0s may be older than a controller while a cluster is upgraded. The source
 * is docs.k0sproject.io, "Version skew policy". Kubernetes itself allows three.
 */
export const K0S_MOST_BEHIND = 1;

/** Returns why the version cannot run on a host whose kubelet may not use cgroup v1, and how to fix that; undefined if it can run. */
export function cgroupV1Refusal(version: string): string | undefined {
  const wanted = parseVersion(version);
  if (!wanted || !refusesCgroupV1(wanted)) return undefined;
  return `the host has cgroup v1, which the kubelet of ${version} refuses: boot it with cgroup v2, or set failCgroupV1: false in its worker profile and restart k0s; or start the agent with --allow-cgroup-v1, which skips this check`;
}
