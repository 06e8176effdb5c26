/** Decides which processes the agent trusts: those of root or of its own user, outside of containers. */
import { statSync } from 'node:fs';
import { ifPossible } from '../../util/errors.ts';
import { isTrustedUser } from '../state/trusted-path.ts';
import { identityOf, kernelText } from './processes.ts';

/** Returns why a process cannot be this host's service; undefined if it can. */
export function whyForeign(pid: number): string | undefined {
  if (pid <= 1 || pid === process.pid) return 'cannot be the service';
  const users = usersOf(pid);
  if (users === undefined) return 'is gone';
  const foreign = users.find((uid) => !isTrustedUser(uid));
  if (foreign !== undefined) return `belongs to user ${foreign}, not to root`;
  const mode = ifPossible(() => statSync(`/proc/${pid}/exe`).mode) ?? 0;
  // sudo runs as root in every way while it waits for a password, so set-user-id programs are excluded.
  if ((mode & 0o6000) !== 0)
    return 'runs a set-user-id program, with arguments that anybody may choose';
  return isElsewhere(pid) ? 'runs in a container' : undefined;
}

/**
 * Returns the real, effective, saved and file system user. A program such as `su` runs as root with arguments that
 * another user chose.
 */
export function usersOf(pid: number): number[] | undefined {
  const [, users] = /^Uid:\s+(\S.*)$/m.exec(kernelText(`/proc/${pid}/status`)) ?? [];
  return users?.split(/\s+/).map(Number);
}

/**
 * Returns true if the cgroup or the root directory of the process shows that it is in a container. Its mounts prove
 * nothing, because services with PrivateTmp of systemd have mounts of their own, too.
 */
function isElsewhere(pid: number): boolean {
  const container = containerOf(pid);
  if (container !== undefined && container !== containerOf('self')) return true;
  roots ??= [identityOf('/proc/self/root'), identityOf('/proc/1/root')];
  const root = identityOf(`/proc/${pid}/root`);
  return root !== undefined && !roots.includes(root);
}

/**
 * The root directories of this host, which are read once. If the agent runs in a container that sees the host's
 * processes, the root directory of the host is that of PID 1.
 */
let roots: readonly (string | undefined)[] | undefined;

/**
 * Returns the container of a process. Container runtimes name the innermost cgroup by 64 hexadecimal digits, and the
 * kubelet's own cgroups contain kubepods.
 */
function containerOf(pid: number | 'self'): string | undefined {
  const cgroup = kernelText(`/proc/${pid}/cgroup`);
  return /[0-9a-f]{64}/g[Symbol.match](cgroup)?.at(-1) ?? /kubepods/.exec(cgroup)?.[0];
}
