/** Says what k0s requires of its hosts, and which of its versions may run together. */
import { parseVersion, type Version } from '../util/version.ts';
import { HOST_REQUIREMENTS } from './data/by-hand.ts';

export { K0S_MOST_BEHIND } from './data/by-hand.ts';

/** Returns why the version cannot run on a host whose kubelet may not use cgroup v1, and how to fix that; undefined if it can run. */
export function cgroupV1Refusal(version: string): string | undefined {
  const wanted = parseVersion(version);
  if (!wanted || !refusesCgroupV1(wanted)) return undefined;
  return `the host has cgroup v1, which the kubelet of ${version} refuses: boot it with cgroup v2, or set failCgroupV1: false in its worker profile and restart k0s; or start the agent with --allow-cgroup-v1, which skips this check`;
}

/**
 * Returns why the worker of the new version would not start with these files in `/etc/k0s/containerd.d`, which are written
 * for containerd 1; undefined if it would, or if the present version has accepted them already.
 */
export function containerdRefusal(
  files: readonly string[],
  from: string | undefined,
  to: string,
): string | undefined {
  const first = HOST_REQUIREMENTS.k0sRefusesConfigurationOfContainerd1;
  const present = parseVersion(from)?.minor;
  const wanted = parseVersion(to)?.minor;
  if (files.length === 0 || wanted === undefined || wanted < first) return undefined;
  if (present !== undefined && present >= first) return undefined;
  const named = files.map((name) => `/etc/k0s/containerd.d/${name}`).join(', ');
  return `k0s 1.${first} and later refuse the configuration of containerd 1 in ${named}, so the worker of ${to} would not start`;
}

/** Returns true if a kubelet of this version does not start on cgroup v1, unless `failCgroupV1: false` allows that. */
export function refusesCgroupV1({ major, minor }: Version): boolean {
  return major > 1 || (major === 1 && minor >= HOST_REQUIREMENTS.cgroupV1IsRefused);
}
