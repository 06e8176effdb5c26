/**
 * Decides which processes the agent trusts. These are processes of root or of the agent's own user that run outside of
 * containers.
 */
import { statSync } from 'node:fs';
import { ifPossible } from '../../util/errors.ts';
import { isTrustedUser } from '../state/trusted-path.ts';
import { identityOf, kernelText } from './processes.ts';

/** Returns why a process cannot be this host's service; undefined if it can. */
export function whyForeign(pid: number): string | undefined {
  // Guard process-first. The agent restarts neither PID 1 nor itself.
  if (pid <= 1 || pid === process.pid) return 'cannot be the service';
  const users = usersOf(pid);
  if (users === undefined) return 'is gone';
  // Guard process-user. Another user chooses what its processes do.
  const foreign = users.find((uid) => !isTrustedUser(uid));
  if (foreign !== undefined) return `belongs to user ${foreign}, not to root`;
  const mode = ifPossible(() => statSync(`/proc/${pid}/exe`).mode) ?? 0;
  // Set-user-id programs are excluded. For example, while sudo waits for a password, all its user ids are root, but any
  // user may have started it.
  // Guard process-set-user. Anybody may have started a set-user-id program.
  if ((mode & 0o6000) !== 0)
    return 'runs a set-user-id program, with arguments that anybody may choose';
  return isElsewhere(pid) ? 'runs in a container' : undefined;
}

/**
 * Returns the real, effective, saved and file system user ids of the process. All are needed, because a program such as
 * `su` runs as root with arguments that another user chose.
 */
export function usersOf(pid: number): number[] | undefined {
  const [, users] = /^Uid:\s+(\S.*)$/m.exec(kernelText(`/proc/${pid}/status`)) ?? [];
  // Guard process-users. A program such as su runs as root for another user.
  return users?.split(/\s+/).map(Number);
}

/**
 * Returns true if the cgroup or the root directory of the process shows that the process is in a container. Its mounts
 * prove nothing, because a systemd service with PrivateTmp also has mounts of its own.
 */
function isElsewhere(pid: number): boolean {
  const container = containerOf(pid);
  // Guard process-container. A pod chooses the arguments of its processes.
  if (container !== undefined && container !== containerOf('self')) return true;
  roots ??= [identityOf('/proc/self/root'), identityOf('/proc/1/root')];
  const root = identityOf(`/proc/${pid}/root`);
  // Guard process-root. Another root directory has other files.
  return root !== undefined && !roots.includes(root);
}

/**
 * The root directories of this host. They are read only once. If the agent runs in a container that can see the
 * processes of the host, the root directory of PID 1 is the root directory of the host.
 */
let roots: readonly (string | undefined)[] | undefined;

/**
 * Returns the container of a process; undefined if it is in no container. Container runtimes give the innermost cgroup
 * a name of 64 hexadecimal digits. The cgroups that the kubelet creates contain kubepods.
 */
function containerOf(pid: number | 'self'): string | undefined {
  const cgroup = kernelText(`/proc/${pid}/cgroup`);
  return /[0-9a-f]{64}/g[Symbol.match](cgroup)?.at(-1) ?? /kubepods/.exec(cgroup)?.[0];
}
