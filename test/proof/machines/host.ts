/** Changes what the machines need on the host that they share, and restores the host afterwards. */
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../wait.ts';

const INSTANCES = '/proc/sys/fs/inotify/max_user_instances';
/**
 * Each kubelet and each containerd uses some dozens of instances. The usual limit of 128 counts for all of them
 * together.
 */
const ENOUGH = 2048;

/**
 * Raises the limit while `work` runs. The limit counts for all machines together, because root is the same user on all
 * of them.
 */
export async function withInotify(work: () => Promise<void>): Promise<void> {
  const before = readFileSync(INSTANCES, 'utf8').trim();
  const raises = Number(before) < ENOUGH;
  if (raises) writeFileSync(INSTANCES, String(ENOUGH));
  try {
    await work();
  } finally {
    if (raises) writeFileSync(INSTANCES, before);
  }
}

/** The group's folders, one for each hierarchy. */
export function cgroupsOf(group: string): string[] {
  const base = '/sys/fs/cgroup';
  const roots = [
    base,
    ...readdirSync(base, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [join(base, entry.name)] : [],
    ),
  ];
  return roots.map((root) => join(root, group)).filter((path) => existsSync(path));
}

/** Removes a cgroup when its processes are gone. The innermost groups go first. */
export async function removeCgroups(group: string): Promise<void> {
  await until(`the cgroups ${group} to be empty`, 180, () => {
    for (const path of cgroupsOf(group)) removeTree(path);
    return cgroupsOf(group).length === 0;
  });
}

function removeTree(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeTree(join(path, entry.name));
  try {
    rmdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
  }
}
