/** What the kubelet of a version of k0s requires of its host. */
import { parseVersion } from '../util/version.ts';
import { refusesCgroupV1 } from './kubeadm-rules.ts';

/** Why a host that does not allow its kubelet cgroup v1 cannot run the version, and what mends that; undefined if it can. */
export function cgroupV1Refusal(version: string): string | undefined {
  const wanted = parseVersion(version);
  if (!wanted || !refusesCgroupV1(wanted)) return undefined;
  return `the host has cgroup v1, which the kubelet of ${version} refuses: boot it with cgroup v2, or set failCgroupV1: false in its worker profile and restart k0s; or start the agent with --allow-cgroup-v1, which skips this check`;
}
