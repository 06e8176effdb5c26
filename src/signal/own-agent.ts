/** What tells from outside whether k0s runs its own agent on a worker: its release, and its worker profile. */
import { compareVersions, parseVersion } from '../util/version.ts';

/** The first release whose workers heed `--disable-components=autopilot` of their controllers. */
export const FIRST_WITH_SWITCH = 'v1.35.1+k0s.0';

/** True if a worker of that release leaves its own agent off when its profile says so; false also for an unreadable version. */
export function heedsSwitch(version: string | undefined): boolean {
  const found = parseVersion(version);
  const first = parseVersion(FIRST_WITH_SWITCH);
  if (found === undefined || first === undefined) return false;
  // A kubelet does not say which build of the release it is.
  return compareVersions({ ...found, build: first.build }, first) >= 0;
}

/** Takes the data of the ConfigMap `kube-system/worker-config-<profile>-<minor>`; a worker reads it only when it starts. */
export function leavesAgentOn(data: Readonly<Record<string, unknown>> | undefined): boolean {
  return data?.['autopilotDisabled'] !== 'true';
}
