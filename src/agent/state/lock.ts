/** Locks a state directory to one agent. A lock whose holder is dead is free. */
import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { RefitError } from '../../util/errors.ts';
import { isSameProcess, type ProcessId } from '../service/host.ts';
import { findProcess } from '../service/processes.ts';

/**
 * The lock is the file with the highest number, `<path>.<n>`. To take over from a dead holder, an agent creates the next
 * number, which only one can; overwriting would let two agents win at the same moment. Throws REFIT_AGENT when a living
 * process holds the lock.
 */
export async function takeLock(path: string, pid: number): Promise<void> {
  const own = findProcess(pid);
  const draft = `${path}-${pid}`;
  await writeFile(draft, JSON.stringify(own));
  try {
    for (;;) {
      const [latest = 0, ...older] = await generations(path);
      const holder = latest === 0 ? undefined : await readHolder(`${path}.${latest}`);
      if (holder !== undefined && isSameProcess(findProcess(holder.pid), holder)) {
        throw new RefitError('REFIT_AGENT', `another agent (PID ${holder.pid}) uses ${dirname(path)}`);
      }
      if (!(await tryLink(draft, `${path}.${latest + 1}`))) continue;
      const outdated = latest === 0 ? older : [latest, ...older];
      for (const number of outdated) await rm(`${path}.${number}`, { force: true });
      return;
    }
  } finally {
    await rm(draft, { force: true });
  }
}

/** Numbers of the existing lock files, highest first. */
async function generations(path: string): Promise<number[]> {
  const prefix = `${basename(path)}.`;
  const names = (await readdir(dirname(path))).filter((name) => name.startsWith(prefix));
  return names
    .map((name) => Number(name.slice(prefix.length)))
    .filter((number) => number > 0)
    .toSorted((a, b) => b - a);
}

async function tryLink(draft: string, lock: string): Promise<boolean> {
  try {
    await link(draft, lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function readHolder(lock: string): Promise<ProcessId | undefined> {
  try {
    return JSON.parse(await readFile(lock, 'utf8')) as ProcessId;
  } catch {
    return undefined;
  }
}
