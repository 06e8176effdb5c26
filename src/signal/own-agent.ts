/**
 * Finds out, without access to the host, whether k0s runs its own agent on a worker. The release of k0s and the worker
 * profile show that.
 */
import { compareVersions, parseVersion } from '../util/version.ts';

/** This is the first release whose workers obey `--disable-components=autopilot` of their controllers. */
export const FIRST_WITH_SWITCH = 'v1.35.1+k0s.0';

/**
 * Returns true if a worker of that release obeys a worker profile that switches its own agent off. Returns false for a
 * version that cannot be parsed.
 */
export function heedsSwitch(version: string | undefined): boolean {
  const found = parseVersion(version);
  const first = parseVersion(FIRST_WITH_SWITCH);
  if (found === undefined || first === undefined) return false;
  // The version that a kubelet reports does not contain the build of the release.
  return compareVersions({ ...found, build: first.build }, first) >= 0;
}

/**
 * Returns true if the worker profile does not switch k0s's own agent off. `data` is the content of the ConfigMap
 * `kube-system/worker-config-<profile>-<minor>`, which a worker reads only when it starts.
 */
export function leavesAgentOn(data: Readonly<Record<string, unknown>> | undefined): boolean {
  return data?.['autopilotDisabled'] !== 'true';
}
